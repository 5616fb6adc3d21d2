# SPDX-License-Identifier: Apache-2.0
"""Every command of the documentation, under the test that runs it, or with the reason why no test does.

`tests/test_docs.py` compares these tables with the pages: a command is here exactly as a page has it. A test gets its
commands from the fixture `documented`, and fails if it ends well without having run all of them.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from tests.support.pages import PAGES, documented_commands

ADDRESS: Final = "127.0.0.1:9092"

STEPS: Final[Mapping[str, Sequence[str]]] = {
    name: block.strip().splitlines()
    for name, block in re.findall(
        r"<!-- steps: (\w+) -->\n```sh\n(.*?)```", PAGES["docs/maintenance.md"], re.DOTALL
    )
}
"""The commands of each part of docs/maintenance.md."""

MEASURED: Final[Mapping[str, str]] = {
    command.removeprefix("python -m bench ").partition(" --")[0]: command
    for command in documented_commands(PAGES["bench/RESULTS.md"])
}
"""The commands that have measured what bench/RESULTS.md shows, by what they measure."""

_COMPARE: Final = MEASURED["compare"].removeprefix("python -m bench ").removesuffix(" --write")
_CLONE: Final = "tests/packaging/test_fresh_clone.py::test_"
_MAINTENANCE: Final = "tests/test_maintenance.py::test_"
_READER: Final = "tests/test_documented_commands.py::test_"
_SYSTEMD: Final = "needs systemd"
_DOCKER: Final = "needs a Docker engine"


def _steps(*parts: str) -> tuple[str, ...]:
    """The commands of these parts of docs/maintenance.md that are run, which is all but those of NOT_RUN."""
    return tuple(command for part in parts for command in STEPS[part] if command not in NOT_RUN)


NOT_RUN: Final[Mapping[str, str]] = {
    "apt-get install openjdk-17-jre-headless": "changes the system, as root",
    "docker build -t groupkeeper .": f"{_DOCKER}: tests/packaging/test_image.py plays the steps of the Dockerfile",
    "docker build -t groupkeeper-audit --target audit .": (
        f"{_DOCKER}: tests/packaging/test_image.py checks the stage, and audits with what the build stage makes"
    ),
    "docker run -p 127.0.0.1:9092:9092 -p 127.0.0.1:9308:9308 -v groupkeeper:/data groupkeeper": (
        f"{_DOCKER}: tests/packaging/test_image.py starts the image's command"
    ),
    "docker run --rm -v groupkeeper:/data:ro -v groupkeeper-audit:/audit groupkeeper-audit": (
        f"{_DOCKER}: tests/packaging/test_image.py starts the image's command"
    ),
    "GRAFANA_PASSWORD=... docker compose --file deploy/compose/compose.yaml up": (
        f"{_DOCKER}: tests/packaging/test_compose.py checks the line and the file"
    ),
    (
        "GRAFANA_PASSWORD=... docker compose --file deploy/compose/compose.yaml --file deploy/compose/gateway.yaml up"
    ): f"{_DOCKER}: tests/packaging/test_compose.py checks the line and the files",
    "helm install groupkeeper deploy/helm/groupkeeper --set image.repository=REGISTRY/groupkeeper": (
        "needs a Kubernetes cluster: tests/packaging/test_helm.py renders what it would install"
    ),
    (
        "helm install groupkeeper deploy/helm/groupkeeper --set image.repository=REGISTRY/groupkeeper"
        r" --set 'settings.upstream\.bootstrap\.servers=kafka:9092' --set 'gateway.brokers={0,1,2}'"
    ): "needs a Kubernetes cluster: tests/packaging/test_helm.py renders what it would install",
    "iostat -x 1": "a tool of the system that only shows its disks, and that few machines have",
    "journalctl -u groupkeeper -n 50": _SYSTEMD,
    "make explore": "searches with new seeds for half an hour: tests/explore.py only starts what other tests run",
    "scp /backup/move.tar.gz NEW-HOST:/backup/move.tar.gz": (
        "needs a second host: tests/test_maintenance.py copies the file on this one"
    ),
    "systemctl disable --now groupkeeper": f"{_SYSTEMD}: tests/test_maintenance.py stops a process instead",
    "systemctl edit groupkeeper-audit": f"{_SYSTEMD}, and opens an editor",
    "systemctl enable --now groupkeeper": (
        f"{_SYSTEMD}: tests/test_maintenance.py starts a process instead, tests/packaging/test_units.py checks the unit"
    ),
    "systemctl enable --now groupkeeper-audit.timer": f"{_SYSTEMD}: tests/packaging/test_units.py checks the unit",
    "systemctl kill --signal=SIGCONT groupkeeper": f"{_SYSTEMD}: tests/test_maintenance.py signals a process instead",
    "systemctl kill --signal=SIGSTOP groupkeeper": f"{_SYSTEMD}: tests/test_maintenance.py signals a process instead",
    "systemctl start groupkeeper": f"{_SYSTEMD}: tests/test_maintenance.py starts a process instead",
    "systemctl status groupkeeper": _SYSTEMD,
    "systemctl stop groupkeeper": f"{_SYSTEMD}: tests/test_maintenance.py stops a process instead",
    "systemd-analyze security groupkeeper": (
        f"{_SYSTEMD}: tests/packaging/test_units.py has the unit's file rated without it"
    ),
    "unshare -rn sh -c 'ip link set lo up; …'": "needs a kernel that lets users make network namespaces",
    "useradd --system --home-dir /var/lib/groupkeeper --shell /usr/sbin/nologin groupkeeper": (
        "changes the system, as root: tests/packaging/test_units.py compares the user with the unit's"
    ),
}
"""The commands that no test runs, and why; what a test does instead."""

RUN_BY: Final[Mapping[str, Sequence[str]]] = {
    # --- a fresh clone
    f"{_CLONE}make_run_installs_and_serves_and_says_where": ("make run", "groupkeeper --version"),
    f"{_CLONE}make_help_lists_the_targets": ("make help",),
    f"{_CLONE}make_demo_tells_both_acts": ("make demo",),
    f"{_CLONE}the_commands_about_groups_show_what_was_committed": (
        ".venv/bin/groupkeeper groups list",
        ".venv/bin/groupkeeper groups describe orders",
        ".venv/bin/groupkeeper groups reset orders --topic work:0 --to-offset 7 --unchecked",
    ),
    f"{_CLONE}the_audit_is_installed_and_finds_nothing_wrong": (
        "make install-audit",
        f".venv/bin/groupkeeper audit --log-dirs data --out audit-results --against {ADDRESS}",
        f"groupkeeper audit --log-dirs /var/lib/groupkeeper --out /var/lib/groupkeeper-audit --against {ADDRESS}",
    ),
    f"{_CLONE}java_takes_an_audits_classes_from_the_archive": (".venv/bin/python -m audit.class_archive",),
    f"{_CLONE}the_audit_is_packed_for_a_cluster": ("make audit-package",),
    f"{_CLONE}make_runs_tests_of_each_tier": ("make test", "make test-quick", "make test-all"),
    f"{_CLONE}make_lint_and_format_find_nothing": ("make lint", "make format"),
    f"{_CLONE}make_simulate_runs_a_seed": ("make simulate",),
    f"{_CLONE}what_is_generated_is_generated_again": (
        ".venv/bin/python -m protocol.codegen",
        "make lock",
        "make lock UPGRADE=--upgrade",
    ),
    f"{_CLONE}make_docs_builds_the_site": ("make docs",),
    f"{_CLONE}what_the_page_types_for_systemd_installs_it": (
        "git clone REPOSITORY /opt/groupkeeper && make -C /opt/groupkeeper install",
        "make -C /opt/groupkeeper install-audit",
        "make install",
    ),
    f"{_CLONE}a_new_version_is_installed_beside_the_old_one_and_again": (
        "git clone REPOSITORY /opt/groupkeeper-NEW",
        "make -C /opt/groupkeeper-NEW install",
        "rm -rf .venv",
        "make install PYTHON=...",
    ),
    f"{_CLONE}pip_installs_the_client_of_the_examples": ("pip install confluent-kafka",),
    f"{_CLONE}pipx_and_uv_install_the_command": ("pipx install .", "uv tool install ."),
    f"{_CLONE}make_bench_measures": (
        f'make bench ARGS="{_COMPARE}"',
        'make bench ARGS="compare --write"',
        f"make bench ARGS=\"commit heartbeat --bootstrap {ADDRESS} --server-pid $(pgrep -f 'groupkeeper serve')\"",
    ),
    f"{_CLONE}make_bench_says_what_there_is_and_counts_code": (
        "make bench ARGS=--help",
        'make bench ARGS="compare --help"',
        "make bench ARGS=code",
        "make bench ARGS=figures",
    ),
    f"{_CLONE}make_bench_audits_a_large_log": ("make bench ARGS=audit",),
    f"{_CLONE}make_bench_troubles_a_node": (
        "make bench ARGS=compaction",
        "make bench ARGS=attack",
        "make bench ARGS=browsing",
        "make bench ARGS=closing",
    ),
    f"{_CLONE}make_bench_puts_a_gateway_before_a_kafka": (
        'make bench ARGS="attack gateway"',
        "make bench ARGS=forwarding",
        "make bench ARGS=failover",
        "make bench ARGS=polling",
    ),
    f"{_CLONE}make_screenshots_takes_the_pictures_of_the_pages": ("make screenshots",),
    # --- what was measured
    "tests/bench/test_instructions.py::test_a_request_costs_no_more_than_is_kept": (
        "make bench ARGS=instructions",
    ),
    "tests/bench/test_cli.py::test_compare_plays_in_turns_and_writes_the_page": (MEASURED["compare"],),
    "tests/bench/test_forwarding.py::test_all_ways_carry_bytes_and_requests_and_the_coordinator_is_watched": (
        MEASURED["forwarding"],
    ),
    "tests/bench/test_attack_gateway.py::test_a_gateway_is_attacked_and_its_memory_is_shown": (
        MEASURED["attack gateway"],
    ),
    "tests/bench/test_polling.py::test_each_node_and_each_broker_is_asked_for_many_groups_at_once": (
        MEASURED["polling"],
    ),
    "tests/bench/test_failover.py::test_clients_get_through_again_with_and_without_a_spare": (
        MEASURED["failover"],
    ),
    "tests/bench/test_browsing.py::test_each_question_has_a_line": (MEASURED["browsing"],),
    "tests/bench/test_attack.py::test_workers_that_get_large_requests_are_not_killed": (
        ".venv/bin/python -m bench.attack.workers",
    ),
    "tests/bench/test_code.py::test_trees_stand_side_by_side": ("python3 bench/code.py OLD_CHECKOUT .",),
    "tests/test_readme.py::test_the_figures_are_those_of_the_results": ("python -m bench figures",),
    "tests/peers/test_peers.py::test_the_command_runs_a_peers_suite": (".venv/bin/python -m tests.peers",),
    # --- a gateway
    "tests/test_readme.py::test_the_gateway_serves_the_topics_of_the_cluster": (
        ".venv/bin/groupkeeper serve --listen 127.0.0.1:9093 --data-dir gateway-data"
        f" --set upstream.bootstrap.servers={ADDRESS}",
        ".venv/bin/groupkeeper groups describe orders --bootstrap 127.0.0.1:9093",
        ".venv/bin/groupkeeper give-back --group orders --data-dir gateway-data",
    ),
    "tests/test_docs.py::test_the_ten_lines_make_a_gateway": (
        "groupkeeper serve --listen 0.0.0.0:9092 --data-dir /var/lib/groupkeeper"
        " --set gateway.host=kafka-gateway.example --set gateway.port.base=10000"
        " --set upstream.bootstrap.servers=kafka-1.internal:9092,kafka-2.internal:9092"
        " --set workers=2 --set gateway.workers=2",
    ),
    "tests/cli/test_moving.py::test_the_documented_commands_move_groups": (
        "groupkeeper adopt --all --data-dir data",
        "groupkeeper adopt --group GROUP --data-dir /var/lib/groupkeeper",
        "groupkeeper adopt --group GROUP --group OTHER --data-dir data --execute",
        "groupkeeper give-back --group GROUP --group OTHER --data-dir data --execute",
        "groupkeeper give-back --group GROUP --data-dir /var/lib/groupkeeper --execute",
        "groupkeeper give-back --all --data-dir /var/lib/groupkeeper --execute",
    ),
    # --- a node, and tools beside it
    f"{_READER}a_group_is_looked_at_reset_and_deleted": (
        "groupkeeper groups describe GROUP",
        "groupkeeper groups describe GROUP --offsets",
        "groupkeeper groups reset GROUP --topic TOPIC:PARTITION --to-offset N --execute",
        "groupkeeper groups expiring --within 7d",
        "groupkeeper groups delete GROUP --execute",
    ),
    f"{_READER}a_topic_gets_an_end_group": (
        "groupkeeper topics alter jobs --config groupkeeper.end.group=jobs-made --execute",
    ),
    f"{_READER}curl_asks_a_node": (
        "curl http://HOST:9308/health",
        "curl --silent http://127.0.0.1:9308/ready | python3 -m json.tool",
        'curl "http://127.0.0.1:9308/api/v1/groups?search=orders&sort=lag&order=desc"',
    ),
    f"{_READER}partitions_are_listed_moved_and_drained": (
        "groupkeeper partitions list --data-dir DIR",
        "groupkeeper partitions move 17 --to 2 --data-dir DIR",
        "groupkeeper partitions drain 3 --data-dir DIR",
    ),
    f"{_READER}a_running_cluster_is_taken_over": (
        "groupkeeper import --from-bootstrap kafka:9092 --bootstrap node:9092",
    ),
    f"{_READER}a_directory_is_looked_at": ("df -i", "du -sh DIR/*", "chmod -R o= DIR"),
    f"{_READER}the_machine_is_looked_at": ("vmstat 1",),
    f"{_READER}a_certificate_says_when_it_expires": ("openssl x509 -enddate -noout -in FILE",),
    f"{_READER}settings_and_metrics_print_their_pages": (
        ".venv/bin/groupkeeper settings > deploy/config.example.toml",
        ".venv/bin/groupkeeper settings --markdown > docs/settings.md",
        ".venv/bin/groupkeeper metrics > docs/metrics.md",
        "groupkeeper settings --markdown",
    ),
    f"{_READER}every_command_lists_its_flags": ("groupkeeper COMMAND --help",),
    f"{_READER}a_shell_gets_completion": (
        "groupkeeper --show-completion",
        "groupkeeper --install-completion",
    ),
    "tests/cli/test_cluster.py::test_the_documented_command_sets_offsets": (
        "groupkeeper groups import FILE --group GROUP --execute --bootstrap HOST:PORT",
    ),
    "tests/test_recipes.py::test_records_of_a_cluster_are_read_once_by_a_group_that_is_here": (
        ".venv/bin/groupkeeper topics create invoices --partitions 3",
    ),
    # --- logs
    "tests/cli/test_log.py::test_repair_by_hand": (
        "groupkeeper log check --data-dir DIR",
        "groupkeeper log repair --partition P --data-dir DIR",
        "groupkeeper log repair --partition P --data-dir DIR --execute",
    ),
    "tests/crash/test_taken_away.py::test_a_cut_journal_stops_the_start_until_the_loss_is_accepted": (
        "groupkeeper log repair --journal --data-dir DIR",
        "groupkeeper log repair --journal --execute --accept-loss --data-dir DIR",
    ),
    "tests/crash/test_taken_away.py::test_a_lost_catalogue_stops_the_start_until_the_loss_is_accepted": (
        "groupkeeper log repair --catalogue --data-dir DIR",
        "groupkeeper log repair --catalogue --execute --accept-loss --data-dir DIR",
    ),
    "tests/importer/test_kafka_import.py::test_the_documented_steps_take_over_a_broker": (
        "groupkeeper import --from-log-dirs /var/lib/kafka/a,/var/lib/kafka/b --data-dir data",
        "groupkeeper import --from-log-dirs /var/lib/kafka/a,/var/lib/kafka/b --data-dir data --execute",
        "groupkeeper serve --data-dir data",
    ),
    # --- Kafka's tools, and Spark's
    "tests/kafka/test_offsets_topic.py::test_the_offsets_formatter_shows_every_commit_in_its_order": (
        "kafka-console-consumer.sh --bootstrap-server HOST:PORT --topic __consumer_offsets --from-beginning"
        " --formatter org.apache.kafka.tools.consumer.OffsetsMessageFormatter",
    ),
    "tests/kafka/test_offsets_topic.py::test_the_group_metadata_formatter_shows_what_describe_groups_says": (
        "kafka-console-consumer.sh --bootstrap-server HOST:PORT --topic __consumer_offsets --from-beginning"
        " --formatter org.apache.kafka.tools.consumer.GroupMetadataMessageFormatter",
    ),
    "tests/kafka/test_cli_tools.py::test_the_documented_commands_of_kafkas_tool_show_lag_and_members": (
        f"kafka-consumer-groups.sh --bootstrap-server {ADDRESS} --describe --group orders",
        "kafka-consumer-groups.sh --bootstrap-server BROKER --describe --members --group GROUP",
    ),
    "tests/audit/test_package.py::test_a_cluster_audits_with_them": (
        "spark-submit --master spark://HOST:7077 --py-files dist/groupkeeper-audit.zip"
        " --archives dist/groupkeeper-audit-libraries.zip#libraries --conf spark.executorEnv.PYTHONPATH=libraries"
        " audit/__main__.py --log-dirs /mnt/broker/data --out /srv/audit",
    ),
    # --- files of a host
    "tests/packaging/test_units.py::test_the_page_installs_the_file_of_settings": (
        "install -D --mode 640 --group groupkeeper"
        " /opt/groupkeeper/deploy/systemd/groupkeeper.env /etc/groupkeeper/groupkeeper.env",
    ),
    "tests/packaging/test_units.py::test_the_pages_copy_the_units": (
        "cp /opt/groupkeeper/deploy/systemd/groupkeeper.service /etc/systemd/system/",
        "cp /opt/groupkeeper/deploy/systemd/groupkeeper-audit.service"
        " /opt/groupkeeper/deploy/systemd/groupkeeper-audit.timer /etc/systemd/system/",
    ),
    f"{_MAINTENANCE}a_backup_can_be_read_and_restored_with_offsets_of_its_time": (
        *_steps("backup", "check", "restore"),
        "chown --recursive groupkeeper: /var/lib/groupkeeper",
    ),
    f"{_MAINTENANCE}a_copy_of_a_node_that_stands_still_has_all_that_it_acknowledged": (
        *_steps("freeze"),
        "cp --archive /backup/groupkeeper/. /var/lib/groupkeeper",
    ),
    f"{_MAINTENANCE}an_upgrade_keeps_everything_and_the_way_back_leads_to_the_backup": (
        _steps("upgrade", "rollback")
    ),
    f"{_MAINTENANCE}a_node_moves_to_another_host_with_its_members_and_offsets": _steps("leave", "arrive"),
}
"""The commands that each test runs."""
