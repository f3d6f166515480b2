"""The release, in the one place that the build, the command and the package read it from."""

__version__ = "0.1.0"
