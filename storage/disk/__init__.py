# SPDX-License-Identifier: Apache-2.0
"""The parts of a data directory: the file system as a port, names of files, the lock, small checked files."""
