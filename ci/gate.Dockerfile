# SPDX-License-Identifier: Apache-2.0
# The gate in a container, of the Debian package:
#     ci/deb.sh 0.2.0 && docker build -f ci/gate.Dockerfile -t kernel-gate .
#     docker run --rm --gpus all -v "$PWD:/src" kernel-gate run
# NVIDIA's container toolkit brings the driver. To build baselines anew, begin with an image that has
# your compiler in place of this one.
FROM debian:12-slim
COPY dist/kernel-gate_*.deb /tmp/
RUN apt-get update && \
    apt-get install --yes --no-install-recommends /tmp/*.deb git curl ca-certificates && \
    rm -rf /tmp/*.deb /var/lib/apt/lists/* && \
    git config --system --add safe.directory /src
ENV NVIDIA_DRIVER_CAPABILITIES=compute,utility
WORKDIR /src
ENTRYPOINT ["gate"]
