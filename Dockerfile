# Two stages: what it takes to install moorage stays behind in the first.
FROM python:3.11.13-slim-bookworm AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /build
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN python -m pip wheel --wheel-dir wheels .
# The environment has no pip of its own.
RUN python -m venv --without-pip /opt/moorage
RUN python -m pip --python /opt/moorage/bin/python install --no-index --find-links wheels moorage

FROM python:3.11.13-slim-bookworm
# Nobody installs anything in a running scheduler.
RUN python -m pip uninstall --yes --root-user-action ignore pip setuptools wheel
COPY --from=build /opt/moorage /opt/moorage
# The root file system is read-only in a cluster; what is compiled was compiled when it was installed.
ENV PATH=/opt/moorage/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
EXPOSE 10259
USER 65532:65532
ENTRYPOINT ["moorage"]
