#include "textflag.h"

// All lengths are multiples of 16, and those of dotAVX2 and the outputs of addProductsAVX2 of 32.

// func addProductsAVX2(out, rows []float32, step int, by []float32)
TEXT ·addProductsAVX2(SB), NOSPLIT, $0-80
	MOVQ out_base+0(FP), DI
	MOVQ out_len+8(FP), CX
	MOVQ rows_base+24(FP), SI
	MOVQ step+48(FP), DX
	SHLQ $2, DX

outputs:
	MOVQ    SI, R8
	MOVQ    by_base+56(FP), R9
	MOVQ    by_len+64(FP), R10
	VMOVUPS (DI), Y0
	VMOVUPS 32(DI), Y1
	VMOVUPS 64(DI), Y2
	VMOVUPS 96(DI), Y3

next:
	VBROADCASTSS (R9), Y8
	VMULPS       (R8), Y8, Y4
	VMULPS       32(R8), Y8, Y5
	VMULPS       64(R8), Y8, Y6
	VMULPS       96(R8), Y8, Y7
	VADDPS       Y4, Y0, Y0
	VADDPS       Y5, Y1, Y1
	VADDPS       Y6, Y2, Y2
	VADDPS       Y7, Y3, Y3
	ADDQ         $4, R9
	ADDQ         DX, R8
	SUBQ         $1, R10
	JG           next
	VMOVUPS      Y0, (DI)
	VMOVUPS      Y1, 32(DI)
	VMOVUPS      Y2, 64(DI)
	VMOVUPS      Y3, 96(DI)
	ADDQ         $128, DI
	ADDQ         $128, SI
	SUBQ         $32, CX
	JG           outputs
	VZEROUPPER
	RET

// FOLD leaves op of all values of Y in the first one of X.
#define FOLD(op, Y, X) \
	VEXTRACTF128 $1, Y, X4 \
	op           X4, X, X \
	VPSHUFD      $0x4e, X, X4 \
	op           X4, X, X \
	VPSHUFD      $0xb1, X, X4 \
	op           X4, X, X

// func largestAVX2(x []float32) float32
TEXT ·largestAVX2(SB), NOSPLIT, $0-28
	MOVQ     x_base+0(FP), SI
	MOVQ     x_len+8(FP), CX
	VPCMPEQD Y2, Y2, Y2
	VPSRLD   $1, Y2, Y2
	VXORPS   Y0, Y0, Y0
	VXORPS   Y1, Y1, Y1

next:
	VANDPS (SI), Y2, Y3
	VANDPS 32(SI), Y2, Y4
	VMAXPS Y3, Y0, Y0
	VMAXPS Y4, Y1, Y1
	ADDQ   $64, SI
	SUBQ   $16, CX
	JG     next

	VMAXPS Y1, Y0, Y0
	FOLD(VMAXPS, Y0, X0)
	VMOVSS X0, ret+24(FP)
	VZEROUPPER
	RET

// func roundAVX2(out []int16, in []float32, by float32)
TEXT ·roundAVX2(SB), NOSPLIT, $0-52
	MOVQ         out_base+0(FP), DI
	MOVQ         out_len+8(FP), CX
	MOVQ         in_base+24(FP), SI
	VBROADCASTSS by+48(FP), Y2

next:
	VMULPS    (SI), Y2, Y0
	VMULPS    32(SI), Y2, Y1
	VCVTPS2DQ Y0, Y0
	VCVTPS2DQ Y1, Y1
	VPACKSSDW Y1, Y0, Y0
	VPERMQ    $0xd8, Y0, Y0
	VMOVDQU   Y0, (DI)
	ADDQ      $64, SI
	ADDQ      $32, DI
	SUBQ      $16, CX
	JG        next
	VZEROUPPER
	RET

// func dotAVX2(a, b []int8) int32
TEXT ·dotAVX2(SB), NOSPLIT, $0-52
	MOVQ  a_base+0(FP), SI
	MOVQ  a_len+8(FP), CX
	MOVQ  b_base+24(FP), DI
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1

next:
	VPMOVSXBW (SI), Y2
	VPMOVSXBW 16(SI), Y3
	VPMOVSXBW (DI), Y4
	VPMOVSXBW 16(DI), Y5
	VPMADDWD  Y4, Y2, Y2
	VPMADDWD  Y5, Y3, Y3
	VPADDD    Y2, Y0, Y0
	VPADDD    Y3, Y1, Y1
	ADDQ      $32, SI
	ADDQ      $32, DI
	SUBQ      $32, CX
	JG        next

	VPADDD       Y1, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPADDD       X1, X0, X0
	VPSHUFD      $0x4E, X0, X1
	VPADDD       X1, X0, X0
	VPSHUFD      $0xB1, X0, X1
	VPADDD       X1, X0, X0
	VMOVD        X0, AX
	MOVL         AX, ret+48(FP)
	VZEROUPPER
	RET
