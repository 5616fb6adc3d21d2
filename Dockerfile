# SPDX-License-Identifier: Apache-2.0
# The server:  docker build -t groupkeeper .
#              docker run -p 127.0.0.1:9092:9092 -p 127.0.0.1:9308:9308 -v groupkeeper:/data groupkeeper
# The audit:   docker build -t groupkeeper-audit --target audit .
#              docker run --rm -v groupkeeper:/data:ro -v groupkeeper-audit:/audit groupkeeper-audit
#
# The node tells clients to connect to GROUPKEEPER_ADVERTISE. localhost:9092 is for clients on this host; for others,
# and for containers that reach the server by a name: -e GROUPKEEPER_ADVERTISE=NAME:9092, and -p 9092:9092 for clients
# on other hosts. There is no TLS and no authentication (docs/security.md).

# not slim: it has a C compiler
FROM python:3.13 AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 REQUIRE_COMPILED=1
WORKDIR /src
# Locked packages first: this layer changes only with the locks.
COPY requirements.lock requirements-build.lock ./
RUN python -m venv /opt/build \
    && /opt/build/bin/pip install --require-hashes -r requirements.lock -r requirements-build.lock
RUN python -m venv --without-pip /opt/groupkeeper \
    && /opt/build/bin/pip --python /opt/groupkeeper/bin/python install --require-hashes -r requirements.lock
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY protocol protocol
COPY storage storage
COPY audit audit
COPY coordinator coordinator
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /tmp/wheel . \
    && /opt/build/bin/pip --python /opt/groupkeeper/bin/python install --no-deps --no-index /tmp/wheel/*.whl

# Spark is published as source only (half a gigabyte); pip builds a wheel from it.
FROM build AS build-audit
COPY requirements-audit.lock ./
RUN /opt/build/bin/pip --python /opt/groupkeeper/bin/python install --require-hashes -r requirements-audit.lock

# The common base of server and audit. The package names are generic, so the working directory is not on the path:
# Python must find only the installed packages.
FROM python:3.13-slim AS base
RUN groupadd --system --gid 10001 groupkeeper \
    && useradd --system --uid 10001 --gid groupkeeper --no-create-home --home-dir /data groupkeeper \
    && install --directory --owner groupkeeper --group groupkeeper /data
ENV PATH=/opt/groupkeeper/bin:$PATH \
    PYTHONSAFEPATH=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
WORKDIR /data
ENTRYPOINT ["groupkeeper"]

FROM base AS audit
RUN apt-get update \
    && apt-get install --yes --no-install-recommends default-jre-headless \
    && rm -rf /var/lib/apt/lists/* \
    && install --directory --owner groupkeeper --group groupkeeper /audit
COPY --from=build-audit /opt/groupkeeper /opt/groupkeeper
# Java's archive of Spark's classes saves each audit ten seconds of processor time at its start.
RUN python -m audit.class_archive
USER 10001:10001
WORKDIR /audit
VOLUME /audit
CMD ["audit", "--log-dirs", "/data", "--out", "/audit"]

FROM base AS server
COPY --from=build /opt/groupkeeper /opt/groupkeeper
ENV GROUPKEEPER_LISTEN=0.0.0.0:9092 \
    GROUPKEEPER_ADVERTISE=localhost:9092 \
    GROUPKEEPER_METRICS_LISTEN=0.0.0.0:9308 \
    GROUPKEEPER_DATA_DIR=/data
USER 10001:10001
VOLUME /data
EXPOSE 9092 9308
STOPSIGNAL SIGTERM
# /health reports that the process is alive; an orchestrator should use /ready to learn whether it serves.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as u; u.urlopen('http://127.0.0.1:' + os.environ['GROUPKEEPER_METRICS_LISTEN'].rpartition(':')[2] + '/health', timeout=2)"]
CMD ["serve"]
