# SPDX-License-Identifier: Apache-2.0
"""Bugs of the kinds that gateways have, for the simulation of one to find."""

from typing import Final

from tests.simulation.planting import Mutant

GATEWAY_MUTANTS: Final = (
    Mutant(
        "a permission is cached for ever",
        "coordinator.gateway.cluster_authorizer",
        "if until_ms > now_ms:",
        "if until_ms:",
    ),
    Mutant(
        "all connections share a cache of permissions",
        "coordinator.gateway.cluster_authorizer",
        "self._cache = ConnectionPermissionCache(counted=shared.remembered)",
        'self._cache = shared.__dict__.setdefault("cache", ConnectionPermissionCache())',
    ),
    Mutant(
        "any error but a refusal counts as allowed",
        "coordinator.gateway.permission_queries",
        "return NONE if error in ALLOWED[api] else error",
        'return error if error.name.endswith("TION_FAILED") else NONE',
        seed=2,
    ),
    Mutant(
        "what may not be seen is not taken out of answers",
        "coordinator.gateway.permission_gate",
        "        if not outcome.is_filtered:\n            return Verdict(HERE, answer)\n",
        "        if True:\n            return Verdict(HERE, answer)\n",
    ),
    Mutant(
        "a request passes while the one before it is decided",
        "coordinator.gateway.client_request_reader",
        "        self.is_waiting = verdict is None\n        if verdict is None:\n            return False\n",
        "        if verdict is None:\n            return True\n",
    ),
    Mutant(
        "an answer made here overtakes others",
        "coordinator.gateway.pipelines",
        "        if not self.pending:\n            self._io.send_to_client(frame)\n",
        "        if True:\n            self._io.send_to_client(frame)\n",
    ),
    Mutant(
        "a pipeline's answer overtakes the other pipeline's",
        "coordinator.gateway.pipelines",
        "if pending.promise is None and pending is not self.pending[0]:",
        "if False:",
    ),
    Mutant(
        "a lost coordinator's requests are forgotten",
        "coordinator.gateway.pipelines",
        "                self._wait(pending, pending.refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE))\n",
        "                self.pending.remove(pending)\n",
    ),
    Mutant(
        "what is kept is not copied out of the shared buffer",
        "coordinator.gateway.socket_stream",
        "self._waiting.append(left if isinstance(data, bytes) else memoryview(bytes(left)))",
        "self._waiting.append(left)",
    ),
    Mutant(
        "what was sent in part is sent again",
        "coordinator.gateway.socket_stream",
        "                    waiting[0] = waiting[0][sent:]\n",
        "                    pass\n",
    ),
    Mutant(
        "a coordinator's address is not rewritten",
        "coordinator.gateway.rewriting",
        "found.host, found.port = moved.host, moved.port",
        "found.port = moved.port",
    ),
    Mutant(
        "a new leader's address is not rewritten",
        "coordinator.gateway.rewriting",
        "return make_endpoint_replacer(version, book.register_and_translate_broker)",
        "return make_endpoint_replacer(version, lambda each: each)",
    ),
    Mutant(
        "the budget is not kept",
        "coordinator.gateway.buffer_budget",
        "while self.total_bytes > self._bytes_max:",
        "while False:",
    ),
    Mutant(
        "the budget gets nothing back",
        "coordinator.gateway.buffer_budget",
        "self.total_bytes -= self._by_holder.pop(holder, 0)",
        "self._by_holder.pop(holder, 0)",
    ),
    Mutant(
        "connections that are gone count on",
        "coordinator.gateway.listeners",
        "        self._admission.leave(peer.host)\n",
        "        return\n",
    ),
    Mutant(
        "a broker that has come back is not found",
        "coordinator.gateway.address_book",
        "self.brokers = dict(brokers)",
        "self.brokers = {**dict(brokers), **self.brokers}",
        seed=2,
    ),
    Mutant(
        "the cluster's offsets topic is read",
        "coordinator.gateway.offsets_topic_read_guard",
        "return None if topic is None or topic not in request else self._decide",
        "return None",
    ),
    Mutant(
        "a group that was given back is still known",
        "coordinator.gateway.adoption",
        "        self._known.difference_update(map(GroupId, groups))\n",
        "",
        seed=3,
    ),
    Mutant(
        "a refusal to take a group over lasts",
        "coordinator.gateway.adoption",
        "if until_ms <= self._mono_ms():",
        "if not until_ms:",
        seed=1,
    ),
    Mutant(
        "a group with members at the cluster is taken over",
        "coordinator.migration.protocol",
        "return AdoptStatus.LIVE if state.is_live else None",
        "return None",
    ),
    Mutant(
        "a group is taken over with some of its offsets",
        "coordinator.migration.protocol",
        "ClusterReading(offsets, mark.epoch, mark.asked_ms, is_unknown)",
        "ClusterReading(dict(list(offsets.items())[1:]), mark.epoch, mark.asked_ms, is_unknown)",
    ),
    Mutant(
        "a group is served before it is taken over",
        "coordinator.migration.model",
        "        return self not in (AdoptStatus.LIVE, AdoptStatus.SHARE, AdoptStatus.BUSY)\n",
        "        return self is not AdoptStatus.SHARE\n",
        seed=2,
    ),
    Mutant(
        "a group is given back though the cluster refused some of it",
        "coordinator.migration.protocol",
        "        if refused:\n            return self._result(GiveBackStatus.REFUSED, refused=refused)\n"
        "        error",
        "        error",
        seed=6,
    ),
    Mutant(
        "a coordinator at the cluster is never looked for again",
        "coordinator.upstream.cluster",
        "        self._coordinators.pop(group, None)\n",
        "        return\n",
    ),
    Mutant(
        "a topic that was made anew is taken for the old one",
        "coordinator.upstream.topic_diff",
        "return other is not None and other.topic_id == topic.topic_id",
        "return other is not None",
        seed=4,
    ),
)
