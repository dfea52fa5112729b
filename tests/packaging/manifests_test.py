#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The manifests in share/kubernetes are valid, agree with each other and with `atp`, and grant no right that is not
needed. tests/packaging/install installs the models.

usage: build/manifests/bin/python manifests_test.py SOURCE_DIR VERSION
Exit status: 0 all valid, 1 not, 77 the models are missing.
"""

from __future__ import annotations

import re
import sys
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

try:
    import kubernetes_validate
    import yaml
    from kubeflow_trainer_api import models
except ImportError as missing:
    print(f"skipped: {missing}; run tests/packaging/install")
    sys.exit(77)

Manifest = dict[str, Any]
KUBERNETES = "1.37"  # the newest release that this kubernetes-validate knows
USER = 65532
SWITCH_PORT = 4790
# Pods that use the network of their node, which the restricted standard forbids.
OF_THE_NODE = {"atp-leaf"}
KUBEFLOW = {"ClusterTrainingRuntime": "TrainerV1alpha1ClusterTrainingRuntime", "TrainJob": "TrainerV1alpha1TrainJob"}


def manifests() -> Iterator[tuple[str, Manifest]]:
    for path in sorted((sources / "share" / "kubernetes").glob("*.yaml")):
        for manifest in yaml.safe_load_all(path.read_text()):
            yield f"{path.name}: {manifest['kind']} {manifest['metadata']['name']}", manifest


def pods_in(value: Any) -> Iterator[Manifest]:
    """All specifications of pods inside of a manifest."""
    if isinstance(value, list):
        for each in value:
            yield from pods_in(each)
    elif isinstance(value, dict):
        if "containers" in value:
            yield value
        for each in value.values():
            yield from pods_in(each)


def pods() -> Iterator[tuple[str, Manifest, Manifest]]:
    for name, manifest in manifests():
        for pod in pods_in(manifest):
            yield name, manifest, pod


class Valid(unittest.TestCase):
    maxDiff = None

    def test_kubernetes_accepts_every_field(self):
        checked = 0
        for name, manifest in manifests():
            if manifest["kind"] in KUBEFLOW:
                continue
            with self.subTest(name):
                kubernetes_validate.validate(manifest, KUBERNETES, strict=True)
                checked += 1
        self.assertEqual(checked, 9)

    def test_an_unknown_field_is_refused(self):
        _, manifest = next(each for each in manifests() if each[1]["kind"] == "DaemonSet")
        manifest["spec"]["template"]["spec"]["hostNetworks"] = True
        with self.assertRaises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(manifest, KUBERNETES, strict=True)

    def test_kubeflow_accepts_every_field(self):
        found = set()
        for name, manifest in manifests():
            if manifest["kind"] not in KUBEFLOW:
                continue
            with self.subTest(name):
                model = getattr(models, KUBEFLOW[manifest["kind"]]).from_dict(manifest)
                self.assertEqual(model.to_dict(), manifest)  # a model drops fields that it does not know
                found.add((manifest["kind"], manifest["metadata"]["name"]))
        self.assertIn(("ClusterTrainingRuntime", "atp-distributed"), found)


class Rights(unittest.TestCase):
    def test_pods_run_without_rights(self):
        for name, _, pod in pods():
            with self.subTest(name):
                context = pod["securityContext"]
                self.assertTrue(context["runAsNonRoot"])
                self.assertEqual((context["runAsUser"], context["runAsGroup"]), (USER, USER))
                self.assertEqual(context["seccompProfile"], {"type": "RuntimeDefault"})
                self.assertFalse(pod["automountServiceAccountToken"])
                for container in pod["containers"]:
                    self.assertEqual(container["securityContext"], {"allowPrivilegeEscalation": False,
                                     "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}})  # fmt: skip

    def test_only_leaves_use_their_node_and_their_namespace_allows_it(self):
        levels = {manifest["metadata"]["name"]: manifest["metadata"]["labels"]["pod-security.kubernetes.io/enforce"]
                  for _, manifest in manifests() if manifest["kind"] == "Namespace"}  # fmt: skip
        for name, manifest, pod in pods():
            if manifest["kind"] == "ClusterTrainingRuntime":
                continue
            with self.subTest(name):
                of_the_node = manifest["metadata"]["name"] in OF_THE_NODE
                self.assertEqual(pod.get("hostNetwork", False), of_the_node)
                expected = "privileged" if of_the_node else "restricted"
                self.assertEqual(levels[manifest["metadata"]["namespace"]], expected)


class Agrees(unittest.TestCase):
    def test_images_have_the_version_of_the_project(self):
        images = {container["image"] for _, _, pod in pods() for container in pod["containers"]}
        self.assertEqual(images, {f"atp:{version}", f"atp-torch:{version}"})

    def test_every_flag_is_one_of_its_command(self):
        for name, _, pod in pods():
            for container in pod["containers"]:
                if "args" not in container:
                    continue
                command, *words = container["args"]
                page = (sources / "share" / "man" / "man1" / f"atp-{command}.1").read_text().replace("\\", "")
                for flag in (word for word in words if word.startswith("--")):
                    self.assertIn(f"fB{flag}fP", page, f"{name}: {command}")

    def test_every_variable_in_an_argument_is_set(self):
        for name, _, pod in pods():
            for container in pod["containers"]:
                known = {variable["name"] for variable in container.get("env", [])}
                values = [*container.get("args", []), *(each.get("value", "") for each in container.get("env", []))]
                used = set(re.findall(r"\$\((\w+)\)", " ".join(values)))
                self.assertLessEqual(used, known, name)

    def test_every_name_of_a_host_is_a_pod_of_a_service_without_address(self):
        services = {manifest["metadata"]["name"]: manifest["spec"] for _, manifest in manifests()
                    if manifest["kind"] == "Service"}  # fmt: skip
        names = {word for _, _, pod in pods() for container in pod["containers"] for word in container.get("args", [])
                 if re.match(r"[a-z-]+-0\.", word)}  # fmt: skip
        self.assertEqual(len(names), 2)
        for name in names:
            pod, service = name.partition(":")[0].split(".")[:2]
            self.assertEqual(pod, f"{service}-0")
            self.assertEqual(services[service]["clusterIP"], "None")

    def test_ranks_reach_the_leaf_of_their_node(self):
        text = yaml.safe_dump([manifest for _, manifest in manifests()])
        named = set(re.findall(r"\$\(HOST_IP\):(\d+)", text)) - {"9790"}
        self.assertEqual(named, {str(SWITCH_PORT)})
        (leaf,) = [pod for _, manifest, pod in pods() if manifest["metadata"]["name"] == "atp-leaf"]
        (port,) = leaf["containers"][0]["ports"]
        self.assertEqual((port["hostPort"], port["protocol"]), (SWITCH_PORT, "UDP"))


if __name__ == "__main__":
    sources, version = Path(sys.argv[1]).resolve(), sys.argv[2]
    unittest.main(argv=sys.argv[:1])
