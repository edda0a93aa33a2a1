// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <array>

#include "control/config/option_table.h"

namespace gradplane::config {
namespace {

using enum OptionType;
using enum OptionScope;

constexpr std::array<std::string_view, 5> kPortKinds = {"af_packet", "af_xdp", "memif", "pci",
                                                        "loopback"};
constexpr std::array<std::string_view, 2> kMemifRoles = {"server", "client"};
constexpr std::array<std::string_view, 3> kHugePages = {"auto", "never", "require"};
static_assert(kPortKinds.size() == static_cast<std::size_t>(PortKind::kLoopback) + 1);
static_assert(kHugePages.size() == static_cast<std::size_t>(HugePages::kRequire) + 1);

constexpr std::int64_t kMaxInterfaceBytes = 15;  // IFNAMSIZ - 1

// One row per option, in the order of the reference page.
constexpr Option kPortOptions[] = {
    {.path = "port.kind",
     .scope = kPort,
     .type = kChoice,
     .choices = kPortKinds,
     .required = true,
     .summary = "How the daemon reaches the network: `af_packet` and `af_xdp` share a kernel "
                "interface, `pci` owns a NIC bound to a DPDK driver, `memif` is shared memory to a "
                "neighbouring process, `loopback` stays in the process and needs no DPDK.",
     .store = [](const Target& t, const Value& v) { t.port->kind = as<PortKind>(v); }},
    {.path = "port.interface",
     .scope = kPort,
     .type = kInterface,
     .min = 1,
     .max = kMaxInterfaceBytes,
     .default_note = "none; required with af_packet and af_xdp",
     .summary = "Kernel interface to use.",
     .store = [](const Target& t, const Value& v) { t.port->interface = v.text; }},
    {.path = "port.pci",
     .scope = kPort,
     .type = kPciAddress,
     .default_note = "none; required with pci",
     .summary = "Address of the NIC.",
     .store = [](const Target& t, const Value& v) { t.port->pci = v.text; }},
    {.path = "port.memif.socket",
     .scope = kPort,
     .type = kPath,
     .min = 2,
     .max = kMaxSocketPathBytes,
     .default_note = "none; required with memif",
     .summary = "Socket over which the two ends of a memif meet, in a folder that nobody else may "
                "enter: DPDK 22.11 ends a server whose peer connects and hangs up at once. A lock "
                "beside it keeps a second daemon from taking the same end.",
     .store = [](const Target& t, const Value& v) { t.port->memif.socket = v.text; }},
    {.path = "port.memif.role",
     .scope = kPort,
     .type = kChoice,
     .choices = kMemifRoles,
     .default_text = "client",
     .summary = "Which end of the memif this node is; exactly one end is the server.",
     .store = [](const Target& t, const Value& v) { t.port->memif.role = as<MemifRole>(v); }},
    {.path = "port.memif.id",
     .scope = kPort,
     .type = kInteger,
     .max = 65535,
     .default_text = "0",
     .summary = "Number of the memif on its socket; the same at both ends.",
     .store = [](const Target& t, const Value& v) { t.port->memif.id = as<std::uint32_t>(v); }},
    {.path = "port.mtu",
     .scope = kPort,
     .type = kIntegerOrWord,
     .min = kMinMtuBytes,
     .max = kMaxMtuBytes,
     .word = "auto",
     .default_text = "auto",
     .summary = "Largest IP packet in bytes. Every node and switch on the way must carry it. "
                "`auto`: 9000 where all nodes have memif, else 1500; then the daemon says if its "
                "interface takes more.",
     .store = [](const Target& t, const Value& v) { t.port->mtu_bytes = as<std::size_t>(v); }},
    {.path = "port.vlan",
     .scope = kPort,
     .type = kInteger,
     .min = 1,
     .max = 4094,
     .default_note = "none: untagged",
     .summary = "802.1Q VLAN of all our packets; others are dropped and counted.",
     .store = [](const Target& t, const Value& v) { t.port->vlan = as<std::uint16_t>(v); }},
    {.path = "port.gateway",
     .scope = kPort,
     .type = kAddress,
     .default_note = "none: every node must be in the same subnet",
     .summary = "Next hop for nodes outside this node's subnet.",
     .store = [](const Target& t,
                 const Value& v) { t.port->gateway = Ipv4{as<std::uint32_t>(v)}; }},
    {.path = "port.huge_pages",
     .scope = kPort,
     .type = kChoice,
     .choices = kHugePages,
     .default_text = "auto",
     .summary = "`auto` uses huge pages where the system has them, `require` refuses to start "
                "without them.",
     .store = [](const Target& t, const Value& v) { t.port->huge_pages = as<HugePages>(v); }},
    {.path = "port.zero_copy",
     .scope = kPort,
     .type = kBoolean,
     .default_text = "true",
     .summary =
         "Whether the device reads long payloads (from 4096 bytes on) where they lie. `false`: "
         "the daemon copies them into packet buffers. Set it so where long packets of a NIC "
         "vanish: the NICs that QEMU emulates, except virtio-net, drop frames of which a "
         "buffer crosses pages that are not adjacent.",
     .store = [](const Target& t, const Value& v) { t.port->zero_copy = v.number != 0; }},
    {.path = "port.memory",
     .scope = kPort,
     .type = kSizeOrAuto,
     .min = 16 * kMiB,
     .max = 64 * kGiB,
     .multiple_of = kMiB,
     .default_text = "auto",
     .summary = "Memory for packet buffers and the device's queues. `auto`: what the port needs.",
     .store = [](const Target& t, const Value& v) { t.port->memory_bytes = as<std::size_t>(v); }},
    {.path = "port.link_rate",
     .scope = kPort,
     .type = kRate,
     .min = 1000000,
     .max = 1600 * std::int64_t{1000000000},
     .default_note = "none: not paced, only the window limits",
     .summary = "Rate of this node's link, for pacing. Set it where a switch or a shaper is slower "
                "than the interface says.",
     .store = [](const Target& t,
                 const Value& v) { t.port->link_rate_bits_per_s = as<std::uint64_t>(v); }},
    {.path = "port.buffer",
     .scope = kPort,
     .type = kSizeOrAuto,
     .min = 4 * kKiB,
     .max = kGiB,
     .default_text = "auto",
     .summary = "What the switch can queue before this node's link: so much may be on its way to "
                "the node at a time besides what the link itself holds. `auto`: not known, found "
                "by what gets lost.",
     .store =
         [](const Target& t, const Value& v) {
           if (v.number > 0) t.port->buffer_bytes = as<std::size_t>(v);
         }},
};

}  // namespace

std::span<const Option> port_options() {
  return kPortOptions;
}

std::string_view name_of(PortKind kind) {
  return kPortKinds[static_cast<std::size_t>(kind)];
}

}  // namespace gradplane::config
