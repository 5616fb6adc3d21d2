# SPDX-License-Identifier: Apache-2.0
"""Where settings come from, which source wins, and the one line that a mistake gets."""

from pathlib import Path

import msgspec
import pytest

from coordinator.config import Address, ConfigError, Settings, load


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "groupkeeper.toml"


def mistake(**sources: object) -> str:
    """The message of a load that must fail."""
    with pytest.raises(ConfigError) as caught:
        load(**sources)  # type: ignore[arg-type]  # each test gives what it means
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_without_sources_everything_has_its_default() -> None:
    assert load() == Settings()


def test_each_source_wins_over_the_one_before(config: Path) -> None:
    config.write_text('"log.flush" = "os"\n"group.max.size" = 1\n"num.partitions" = 1\n"listen" = "a:1"\n')
    environment = {
        "GROUPKEEPER_GROUP_MAX_SIZE": "2",
        "GROUPKEEPER_NUM_PARTITIONS": "2",
        "GROUPKEEPER_LISTEN": "b:2",
    }
    assignments = ["num.partitions=3", "listen=c:3", "listen = d:4"]
    flags = {"--listen": ("listen", "e:5"), "--advertise": ("advertise", None)}
    assert load(config, environment, assignments, flags) == Settings(
        log_flush="os", group_max_size=2, num_partitions=3, listen=Address("e", 5)
    )


@pytest.mark.parametrize(
    "text",
    [
        '"offsets.retention.minutes" = 5\n"data.dir" = "d"',
        'offsets.retention.minutes = 5\ndata.dir = "d"',
        '[offsets.retention]\nminutes = 5\n[data]\ndir = "d"',
        '[offsets]\n"retention.minutes" = 5\n["data"]\n\'dir\' = "d"',
    ],
)
def test_names_in_toml_may_be_quoted_dotted_or_tables(config: Path, text: str) -> None:
    config.write_text(text)
    assert load(config) == Settings(offsets_retention_minutes=5, data_dir=Path("d"))


def test_a_byte_order_mark_is_no_part_of_the_first_setting(config: Path) -> None:
    config.write_bytes(b'\xef\xbb\xbf"log.flush" = "os"\n')
    assert load(config) == Settings(log_flush="os")


def test_every_setting_can_come_from_the_environment() -> None:
    environment = {
        f"GROUPKEEPER_{field.name.upper()}": "" if field.default is None else str(field.default)
        for field in msgspec.structs.fields(Settings)
    }
    assert load(environment=environment) == Settings()


def test_an_empty_value_unsets_what_may_be_absent() -> None:
    assert load(assignments=["metrics.listen="]).metrics_listen is None


def test_variables_of_others_and_those_that_kubernetes_makes_for_a_service_are_let_be() -> None:
    environment = {
        "PATH": "/bin",
        "GROUPKEEPER": "x",
        "GROUPKEEPER_CONFIG": "file.toml",
        "GROUPKEEPER_SERVICE_HOST": "10.0.0.1",
        "GROUPKEEPER_SERVICE_PORT": "9092",
        "GROUPKEEPER_SERVICE_PORT_METRICS": "9308",
        "GROUPKEEPER_PORT": "tcp://10.0.0.1:9092",
        "GROUPKEEPER_PORT_9092_TCP": "tcp://10.0.0.1:9092",
        "GROUPKEEPER_PORT_9092_TCP_ADDR": "10.0.0.1",
        "GROUPKEEPER_METRICS_PORT": "tcp://10.0.0.2:9308",
    }
    assert load(environment=environment) == Settings()


def test_a_bad_value_is_named_with_its_file_line_and_what_is_expected(config: Path) -> None:
    config.write_text('# a comment = 1\n\n[offsets]\nretention.minutes = "ten"\n')
    assert mistake(config=config) == (
        f"bad value for offsets.retention.minutes: 'ten' ({config}:4), "
        "expected a whole number from 1 to 2147483647"
    )


def test_a_bad_value_is_named_with_its_variable() -> None:
    assert mistake(environment={"GROUPKEEPER_LOG_FLUSH": "never"}) == (
        "bad value for log.flush: 'never' (environment variable GROUPKEEPER_LOG_FLUSH), "
        "expected always, interval or os"
    )


def test_a_bad_value_is_named_with_its_flag() -> None:
    assert mistake(flags={"--metrics": ("metrics.listen", "9308")}) == (
        "bad value for metrics.listen: '9308' (--metrics), "
        "expected HOST:PORT with a port from 0 to 65535, or nothing"
    )


def test_a_bad_value_counts_even_where_a_flag_overrides_it(config: Path) -> None:
    config.write_text("num.partitions = 0")
    assert f"({config}:1)" in mistake(config=config, assignments=["num.partitions=1"])


def test_a_long_value_is_shown_in_part() -> None:
    assert len(mistake(assignments=[f"log.level={'x' * 5_000}"])) < 300


def test_an_unknown_setting_gets_the_nearest_name(config: Path) -> None:
    config.write_text('"log.flush" = "os"\n"offset.retention.minutes" = 5\n')
    assert mistake(config=config) == (
        f"unknown setting offset.retention.minutes ({config}:2); did you mean offsets.retention.minutes?"
    )


def test_an_unknown_variable_gets_the_nearest_name() -> None:
    assert mistake(environment={"GROUPKEEPER_DATADIR": "x"}) == (
        "unknown setting datadir (environment variable GROUPKEEPER_DATADIR); did you mean data.dir?"
    )


def test_an_unknown_setting_like_nothing_we_have_gets_the_way_to_the_list() -> None:
    assert mistake(assignments=["zookeeper.connect=a:1"]) == (
        "unknown setting zookeeper.connect (--set); `groupkeeper settings` lists them all"
    )


@pytest.mark.parametrize("text", ["log.flush", "=os", ""])
def test_set_wants_a_key_and_a_value(text: str) -> None:
    assert mistake(assignments=[text]) == f"--set {text}: expected KEY=VALUE, such as --set log.flush=os"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert (
        mistake(config=tmp_path / "no")
        == f"cannot read the config file {tmp_path / 'no'}: No such file or directory"
    )


def test_a_file_that_is_no_text_is_named(config: Path) -> None:
    config.write_bytes(b"\xff")
    assert mistake(config=config) == f"cannot read the config file {config}: it is not UTF-8"


def test_a_file_that_is_no_toml_is_named_with_the_line(config: Path) -> None:
    config.write_text("a = 1\nb c\n")
    assert mistake(config=config).startswith(f"the config file {config} is not TOML: ")
    assert "line 2" in mistake(config=config)


def test_names_that_toml_cannot_nest_get_a_hint(config: Path) -> None:
    config.write_text('log.flush = "os"\nlog.flush.interval.ms = 5\n')
    assert mistake(config=config).endswith('; put names in quotes: "log.flush" = "always"')


def test_one_setting_written_in_two_ways_is_refused(config: Path) -> None:
    config.write_text('"data.dir" = "a"\ndata.dir = "b"\n')
    assert mistake(config=config) == f"data.dir is set twice ({config}:2)"


def test_session_timeouts_that_leave_no_room_are_refused() -> None:
    assert mistake(assignments=["group.max.session.timeout.ms=5000"]) == (
        "group.min.session.timeout.ms = 6000 (its default) is more than "
        "group.max.session.timeout.ms = 5000 (--set)"
    )


@pytest.mark.parametrize("address", ["0.0.0.0:9092", "[::]:9092", ":9092"])
def test_listening_everywhere_needs_an_address_to_tell_clients(address: str) -> None:
    assert mistake(assignments=[f"listen={address}"]).endswith(
        "(--set): set advertise to the HOST:PORT they use"
    )
    assert load(assignments=[f"listen={address}", "advertise=kafka.example:9092"]).listen.port == 9092


def test_nobody_can_be_told_a_wildcard() -> None:
    assert mistake(assignments=["advertise=0.0.0.0:9092"]).startswith(
        "clients cannot connect to advertise = 0.0.0.0"
    )
