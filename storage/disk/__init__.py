# SPDX-License-Identifier: Apache-2.0
"""What a data directory is made of: the file system as a port, names of files, the lock, small checked files."""
