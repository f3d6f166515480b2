# Two images: the broker, and `spark`, which has the jobs, a Java and Spark's Kafka connector as well.
#
#   docker build --tag ottla .
#   docker build --tag ottla-spark --target spark .
#   docker run --publish 127.0.0.1:9092:9092 --volume ottla:/var/lib/ottla ottla
#
# Both run as the user `ottla` and keep what has to last in /var/lib/ottla. Settings are KAFKA_* variables, as the
# image apache/kafka takes them; docker-compose.yml has those of a cluster.

FROM python:3.13-slim-bookworm AS base
ENV LANG=C.UTF-8
RUN useradd --system --uid 10001 --create-home --home-dir /var/lib/ottla --shell /usr/sbin/nologin ottla

FROM base AS build
WORKDIR /src
RUN python -m venv /opt/ottla
COPY . .
RUN /opt/ottla/bin/pip install --no-cache-dir .

FROM base AS java
RUN apt-get update && apt-get install --yes --no-install-recommends openjdk-17-jre-headless && \
    rm -rf /var/lib/apt/lists/*

FROM java AS build-spark
WORKDIR /src
RUN python -m venv /opt/ottla
COPY . .
RUN /opt/ottla/bin/pip install --no-cache-dir '.[spark]'
RUN /opt/ottla/bin/ottla spark connector --to /opt/ottla/connector

FROM java AS spark
COPY --from=build-spark /opt/ottla /opt/ottla
ENV PATH=/opt/ottla/bin:/usr/local/bin:/usr/bin:/bin HOME=/var/lib/ottla
WORKDIR /var/lib/ottla
USER ottla
VOLUME /var/lib/ottla
STOPSIGNAL SIGTERM
ENTRYPOINT ["ottla", "spark"]
CMD ["--help"]

FROM base AS broker
COPY --from=build /opt/ottla /opt/ottla
ENV PATH=/opt/ottla/bin:/usr/local/bin:/usr/bin:/bin HOME=/var/lib/ottla
WORKDIR /var/lib/ottla
USER ottla
VOLUME /var/lib/ottla
STOPSIGNAL SIGTERM
ENTRYPOINT ["ottla"]
CMD ["serve"]
ENV KAFKA_LISTENERS=PLAINTEXT://:9092 \
    KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://localhost:9092 \
    KAFKA_LOG_DIRS=/var/lib/ottla/data
EXPOSE 9092
HEALTHCHECK --interval=10s --timeout=10s --start-period=60s \
    CMD ["ottla", "cluster", "cluster-id", "--bootstrap-server", "localhost:9092"]
