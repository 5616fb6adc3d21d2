# SPDX-License-Identifier: Apache-2.0
"""A worker: the channel to the supervisor, and the node that carries out its messages.

`process_main` gives a worker a process of its own; a simulation has several workers in one process.
"""

import asyncio

from coordinator.app import App
from coordinator.host_resources import HostResources
from coordinator.start_error import CannotStart
from coordinator.workers import messages
from coordinator.workers.questions.answers import answer_question
from coordinator.workers.supervised_process import ProcessHooks, SupervisedProcess
from coordinator.workers.worker_node import WorkerNode


class Worker(SupervisedProcess[messages.FromSupervisor]):
    """The channel to the supervisor, and the node that carries out its messages."""

    def __init__(self, loop: asyncio.AbstractEventLoop, machine: HostResources, hooks: ProcessHooks) -> None:
        super().__init__(loop, hooks, messages.FromSupervisor)
        self._loop = loop
        self._machine = machine
        self.node: WorkerNode | None = None
        """The node, once the supervisor has sent its settings."""

    def _got(self, message: messages.FromSupervisor) -> None:
        if isinstance(message, messages.WorkerStart):
            self._welcome(message)
        elif self.node is not None:
            self._do(self.node, message)

    def _do(self, node: WorkerNode, message: messages.FromSupervisor) -> None:
        match message:
            case messages.LeadPartition():
                node.share.lead(message)
            case messages.ResignPartition():
                node.share.resign(message)
            case messages.ViewUpdate():
                node.cluster.update(message.view)
            case messages.PendingOffsetDrops():
                node.share.note_deleted_topics(message)
            case messages.OffsetDropReportStored():
                node.topics.end_report_ticket(message)
            case messages.AllTopicsPiece() | messages.TopicsChanged() | messages.TopicChangeReply():
                node.topics.replica.queue_message(message)
            case messages.Stop():
                self._tasks.start(self._stop(node), "stop")
            case _:
                self._receive(node, message)

    def _receive(self, node: WorkerNode, message: messages.FromSupervisor) -> None:
        """Handle a request or a response of other nodes, or a report about the cluster."""
        match message:
            case messages.UpstreamStatus():
                node.apply_upstream_state(message.state, message.gateways)
            case messages.UpstreamEndOffsetsReply():
                node.cluster_ends.receive(message)
            case messages.NodeQuestion():
                self._tasks.start(
                    self._answer(node.app, message),
                    "answer a question of another process",
                    lambda _error: self.channel.send(messages.NodeAnswer(message.number, None)),
                )
            case messages.NodeAnswerPassedOn() | messages.NodesHaveAnswered():
                node.questions.receive(message)

    async def _answer(self, app: App, asked: messages.NodeQuestion) -> None:
        self.channel.send(messages.NodeAnswer(asked.number, await answer_question(app, asked.question)))

    def _welcome(self, welcome: messages.WorkerStart) -> None:
        settings = welcome.settings
        self._hooks.configure(settings, settings.node_id)
        try:
            node = self.node = WorkerNode(welcome, self._loop, self._machine, self.channel.send)
        except CannotStart as error:
            self._cannot_serve(str(error))
            return
        self._hooks.set_stall_ended_callback(settings.worker_timeout_ms, node.record_loop_stall)
        self._tasks.start(self._start(node), "start")

    async def _start(self, node: WorkerNode) -> None:
        await node.topics.replica.arrived.wait()
        try:
            serving = await node.app.start()
        except CannotStart as error:
            self._cannot_serve(str(error))
            return
        self.channel.send(messages.WorkerListening(serving.listen, serving.advertised, serving.metrics))

    async def _stop(self, node: WorkerNode) -> None:
        node.share.close()
        await node.app.stop()
        self.ended.set_result(0)
