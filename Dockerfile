# Two stages: what it takes to install moorage stays behind in the first.
# The same source gives the same files; `docker buildx build --build-arg SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
# --output type=image,rewrite-timestamp=true` also gives them the same times, and the image the same digest.
# The digest is that of the tag for all platforms; `docker buildx imagetools inspect python:TAG` shows that of another.
FROM python:3.11.13-slim-bookworm@sha256:86adf8dbadc3d6e82ee5dd2c74bec2e1c2467cdad47886280501df722372d2e1 AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
# A fixed order of what Python writes as a set; the time of the source is that of files in wheels.
ENV PYTHONHASHSEED=0
ARG SOURCE_DATE_EPOCH
WORKDIR /build
COPY requirements requirements
RUN python -m pip install --require-hashes --requirement requirements/build.txt
# The environment has no pip of its own.
RUN python -m venv --without-pip /opt/moorage
RUN python -m pip --python /opt/moorage/bin/python install --no-compile --require-hashes \
      --requirement requirements/runtime.txt
COPY pyproject.toml README.md LICENSE ./
COPY src src
COPY tools tools
RUN python -m pip wheel --no-deps --no-build-isolation --wheel-dir wheels .
RUN python -m pip --python /opt/moorage/bin/python install --no-compile --no-deps --no-index \
      --find-links wheels moorage
# Compiled files name their source's hash in place of its time, and nobody changes that source.
RUN /opt/moorage/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/moorage/lib
RUN /opt/moorage/bin/python -m tools.sbom requirements/runtime.txt --output /opt/moorage/sbom.cdx.json

FROM python:3.11.13-slim-bookworm@sha256:86adf8dbadc3d6e82ee5dd2c74bec2e1c2467cdad47886280501df722372d2e1
LABEL org.opencontainers.image.title="moorage" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.cyclonedx.sbom="/opt/moorage/sbom.cdx.json"
# Nobody installs anything in a running scheduler.
RUN python -m pip uninstall --yes --root-user-action ignore pip setuptools wheel
COPY --from=build /opt/moorage /opt/moorage
# The root file system is read-only in a cluster; what is compiled was compiled when it was installed.
ENV PATH=/opt/moorage/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
EXPOSE 10259
USER 65532:65532
ENTRYPOINT ["moorage"]
