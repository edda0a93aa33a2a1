// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
//
// Each hooked symbol is one indirect jump through gp_targets, so that the function behind it sees the
// caller's registers and stack untouched. Until the first call a target is a stub that asks
// gp_resolve() first. Vector registers are kept as xmm: no hooked function takes wider ones.

#if !defined(__x86_64__) || !defined(__linux__)
#error "gradplane's preload object is written for x86-64 Linux"
#endif

        .text
        .type gp_resolve_and_jump, @function
gp_resolve_and_jump:
        .cfi_startproc
        .cfi_adjust_cfa_offset 8        // the hook's number, pushed by the stub
        push %rax
        .cfi_adjust_cfa_offset 8
        push %rdi
        .cfi_adjust_cfa_offset 8
        push %rsi
        .cfi_adjust_cfa_offset 8
        push %rdx
        .cfi_adjust_cfa_offset 8
        push %rcx
        .cfi_adjust_cfa_offset 8
        push %r8
        .cfi_adjust_cfa_offset 8
        push %r9
        .cfi_adjust_cfa_offset 8
        push %r10
        .cfi_adjust_cfa_offset 8
        sub $128, %rsp
        .cfi_adjust_cfa_offset 128
        movaps %xmm0, 0(%rsp)
        movaps %xmm1, 16(%rsp)
        movaps %xmm2, 32(%rsp)
        movaps %xmm3, 48(%rsp)
        movaps %xmm4, 64(%rsp)
        movaps %xmm5, 80(%rsp)
        movaps %xmm6, 96(%rsp)
        movaps %xmm7, 112(%rsp)
        mov 192(%rsp), %edi
        call gp_resolve
        mov %rax, %r11
        movaps 0(%rsp), %xmm0
        movaps 16(%rsp), %xmm1
        movaps 32(%rsp), %xmm2
        movaps 48(%rsp), %xmm3
        movaps 64(%rsp), %xmm4
        movaps 80(%rsp), %xmm5
        movaps 96(%rsp), %xmm6
        movaps 112(%rsp), %xmm7
        add $128, %rsp
        .cfi_adjust_cfa_offset -128
        pop %r10
        .cfi_adjust_cfa_offset -8
        pop %r9
        .cfi_adjust_cfa_offset -8
        pop %r8
        .cfi_adjust_cfa_offset -8
        pop %rcx
        .cfi_adjust_cfa_offset -8
        pop %rdx
        .cfi_adjust_cfa_offset -8
        pop %rsi
        .cfi_adjust_cfa_offset -8
        pop %rdi
        .cfi_adjust_cfa_offset -8
        pop %rax
        .cfi_adjust_cfa_offset -8
        lea 8(%rsp), %rsp
        .cfi_adjust_cfa_offset -8
        jmp *%r11
        .cfi_endproc
        .size gp_resolve_and_jump, . - gp_resolve_and_jump

        .set gp_index, 0
        .macro gp_hook symbol
        .text
        .balign 16
        .type gp_stub_\symbol, @function
gp_stub_\symbol:
        endbr64
        pushq $gp_index
        jmp gp_resolve_and_jump
        .size gp_stub_\symbol, . - gp_stub_\symbol
        .globl \symbol
        .type \symbol, @function
        .balign 16
\symbol:
gp_trampoline_\symbol:
        endbr64
        jmp *gp_targets+8*gp_index(%rip)
        .size \symbol, . - \symbol
        .section .data.gp_targets, "aw", @progbits
        .quad gp_stub_\symbol
        .section .data.rel.ro.gp_trampolines, "aw", @progbits
        .quad gp_trampoline_\symbol
        .set gp_index, gp_index + 1
        .endm

        .section .data.gp_targets, "aw", @progbits
        .balign 8
        .globl gp_targets
        .hidden gp_targets
gp_targets:
        .section .data.rel.ro.gp_trampolines, "aw", @progbits
        .balign 8
        .globl gp_trampolines
        .hidden gp_trampolines
gp_trampolines:

#define GP_HOOK(name, symbol) gp_hook symbol;
#include "trainer-shim/preload/hooks.def"
#include "trainer-shim/preload/mpi_hooks.def"

        .section .note.GNU-stack, "", @progbits
