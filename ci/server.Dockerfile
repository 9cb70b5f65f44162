# SPDX-License-Identifier: Apache-2.0
# The tracking server in a container, of the Debian package:
#     ci/deb.sh 0.2.0 && docker build -f ci/server.Dockerfile -t kernel-gate-server .
#     docker run -v gate:/var/lib/kernel-gate -p 127.0.0.1:8731:8731 kernel-gate-server
# Put a proxy with TLS before it, or give it --tls-cert and --tls-key. SQLite needs a local volume.
FROM debian:12-slim
COPY dist/kernel-gate-server_*.deb /tmp/
RUN apt-get update && \
    apt-get install --yes --no-install-recommends /tmp/*.deb ca-certificates && \
    rm -rf /tmp/*.deb /var/lib/apt/lists/* && \
    useradd --system --create-home --home-dir /var/lib/kernel-gate kernel-gate
USER kernel-gate
WORKDIR /var/lib/kernel-gate
VOLUME /var/lib/kernel-gate
EXPOSE 8731
ENTRYPOINT ["gate-server"]
CMD ["--db", "gate.db", "--listen", "0.0.0.0:8731"]
