# SPDX-License-Identifier: Apache-2.0
"""Which permissions the requests of groups need, and what is left of one whose client has some of them only.

Below the apis, and without I/O: whoever judges a request says where the permissions come from.
"""
