# SPDX-License-Identifier: Apache-2.0
# docker build -t groupkeeper . && docker run -p 9092:9092 -p 9308:9308 -v groupkeeper:/data groupkeeper
#
# Clients outside of the host need the address they use: -e GROUPKEEPER_ADVERTISE=kafka.example:9092.

# not slim: it has a C compiler
FROM python:3.13 AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
# Locked packages first: this layer changes only with the locks.
COPY requirements.lock requirements-build.lock ./
RUN python -m venv /opt/build \
    && /opt/build/bin/pip install --require-hashes -r requirements.lock -r requirements-build.lock
RUN python -m venv /opt/groupkeeper && /opt/groupkeeper/bin/pip install --require-hashes -r requirements.lock
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY protocol protocol
COPY storage storage
COPY coordinator coordinator
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /tmp/wheel . \
    && /opt/groupkeeper/bin/pip install --no-deps --no-index /tmp/wheel/*.whl \
    && /opt/groupkeeper/bin/pip uninstall --yes pip

FROM python:3.13-slim
RUN groupadd --system --gid 10001 groupkeeper \
    && useradd --system --uid 10001 --gid groupkeeper --no-create-home --home-dir /data groupkeeper \
    && install --directory --owner groupkeeper --group groupkeeper /data
COPY --from=build /opt/groupkeeper /opt/groupkeeper
# The package names are generic, so nothing but the installed ones may be found: no working directory on the path.
ENV PATH=/opt/groupkeeper/bin:$PATH \
    PYTHONSAFEPATH=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    GROUPKEEPER_LISTEN=0.0.0.0:9092 \
    GROUPKEEPER_ADVERTISE=localhost:9092 \
    GROUPKEEPER_METRICS_LISTEN=0.0.0.0:9308 \
    GROUPKEEPER_DATA_DIR=/data
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 9092 9308
STOPSIGNAL SIGTERM
# /health says that the process is alive; whether it serves every partition yet is /ready, for an orchestrator to ask.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as u; u.urlopen('http://127.0.0.1:' + os.environ['GROUPKEEPER_METRICS_LISTEN'].rpartition(':')[2] + '/health', timeout=2)"]
ENTRYPOINT ["groupkeeper"]
CMD ["serve"]
