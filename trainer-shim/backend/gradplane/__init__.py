# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Gradient synchronisation by the gradplane daemon of this host. See gradplane.torch."""
