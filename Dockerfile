# What the lessons need, in a container: a plain Debian, and what common/setup.sh installs. The repository itself is mounted.
#   docker build -t kernel-ladder .
#   docker run --rm -it -v "$PWD":/ladder kernel-ladder cmake --workflow --preset ladder
# With a GPU, from one of NVIDIA's images with a toolkit; run it with --gpus all:
#   docker build -t kernel-ladder --build-arg BASE=nvidia/cuda:12.8.1-devel-ubuntu24.04 .
ARG BASE=debian:12
FROM ${BASE}
WORKDIR /setup
# setup.sh, and what it reads.
COPY common/setup.sh common/
COPY common/cmake/Device.cmake common/cmake/
RUN common/setup.sh
WORKDIR /ladder
