# Plimsoll in a container, with the libraries it runs with and no compiler.
#
#   docker build -t plimsoll .
#   docker run --rm -v "$PWD/data:/plimsoll/data" -v "$PWD/out:/plimsoll/out" \
#       plimsoll plan config/demo.py --dataset=mine
#
# docs/install.md has more.

FROM debian:12-slim AS build
# dpkg-dev and file: what CPack asks about the package's dependencies
RUN apt-get update && \
    apt-get install -y --no-install-recommends dpkg-dev file
WORKDIR /source
COPY script/setup script/
RUN script/setup --run
COPY . .
RUN cmake --preset release -DPL_TESTS=OFF && \
    cmake --build --preset release -j "$(nproc)" && \
    cpack -G DEB --config build/release/CPackConfig.cmake -B /package

FROM debian:12-slim
RUN --mount=type=bind,from=build,source=/package,target=/package \
    apt-get update && \
    apt-get install -y --no-install-recommends /package/plimsoll_*.deb \
        libmicrohttpd12 && \
    rm -rf /var/lib/apt/lists/*
# The examples' config/... and whoever runs it: not root.
RUN useradd --uid 1000 --home-dir /plimsoll --no-create-home plimsoll && \
    mkdir -p /plimsoll/data /plimsoll/out && \
    ln -s /usr/share/plimsoll/config /plimsoll/config && \
    chown -R plimsoll:plimsoll /plimsoll
USER plimsoll
WORKDIR /plimsoll
VOLUME ["/plimsoll/data", "/plimsoll/out"]
ENTRYPOINT ["plimsoll"]
CMD ["--help"]
