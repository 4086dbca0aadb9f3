#include "textflag.h"
#include "go_asm.h"

// All functions compute four outputs at once. BX and R12 point to the weights and inputs to
// multiply next; CX and AX are one and three times the bytes of an output's weights.
#define BEGIN \
	MOVQ p+0(FP), DX \
	MOVQ product_out(DX), DI \
	MOVQ product_outStep(DX), SI \
	SHLQ $2, SI \
	MOVQ product_weights(DX), R8 \
	MOVQ product_scale(DX), R9 \
	MOVQ product_in(DX), R10 \
	MOVQ product_inStep(DX), R11 \
	SHLQ $1, R11 \
	MOVQ product_step(DX), CX \
	MOVQ product_outputs(DX), DX \
	LEAQ (CX)(CX*2), AX

#define NEXT(label) \
	LEAQ (R8)(CX*4), R8 \
	ADDQ $16, R9 \
	ADDQ $16, DI \
	SUBQ $4, DX \
	JG   label \
	VZEROUPPER \
	RET

// SUM leaves the sums of the four outputs in Y0 to Y3 in X0.
#define SUM(Y0, Y1, Y2, Y3, X0, X1) \
	VPHADDD      Y1, Y0, Y0 \
	VPHADDD      Y3, Y2, Y2 \
	VPHADDD      Y2, Y0, Y0 \
	VEXTRACTI128 $1, Y0, X1 \
	VPADDD       X1, X0, X0

#define UNITS \
	MOVQ p+0(FP), R13 \
	MOVQ product_units(R13), R13

// ADD adds the sums in X0, times their scales and the unit of the row, to a row.
#define ADD(X0, X1, unit, row) \
	VBROADCASTSS unit, X1 \
	VMULPS       (R9), X1, X1 \
	VCVTDQ2PS    X0, X0 \
	VMULPS       X1, X0, X0 \
	VADDPS       row, X0, X0 \
	VMOVUPS      X0, row

// func rows2AVX2(p *product)
TEXT ·rows2AVX2(SB), NOSPLIT, $0-8
	BEGIN

outputs:
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3
	VPXOR Y4, Y4, Y4
	VPXOR Y5, Y5, Y5
	VPXOR Y6, Y6, Y6
	VPXOR Y7, Y7, Y7
	MOVQ  R8, BX
	MOVQ  R10, R12
	MOVQ  p+0(FP), R13
	MOVQ  product_inputs(R13), R13

inputs:
	VPMOVSXBW (BX), Y8
	VPMOVSXBW (BX)(CX*1), Y9
	VPMOVSXBW (BX)(CX*2), Y10
	VPMOVSXBW (BX)(AX*1), Y11
	VMOVDQU   (R12), Y12
	VPMADDWD  Y8, Y12, Y13
	VPADDD    Y13, Y0, Y0
	VPMADDWD  Y9, Y12, Y14
	VPADDD    Y14, Y1, Y1
	VPMADDWD  Y10, Y12, Y13
	VPADDD    Y13, Y2, Y2
	VPMADDWD  Y11, Y12, Y14
	VPADDD    Y14, Y3, Y3
	VMOVDQU   (R12)(R11*1), Y12
	VPMADDWD  Y8, Y12, Y13
	VPADDD    Y13, Y4, Y4
	VPMADDWD  Y9, Y12, Y14
	VPADDD    Y14, Y5, Y5
	VPMADDWD  Y10, Y12, Y13
	VPADDD    Y13, Y6, Y6
	VPMADDWD  Y11, Y12, Y14
	VPADDD    Y14, Y7, Y7
	ADDQ      $16, BX
	ADDQ      $32, R12
	SUBQ      $16, R13
	JG        inputs

	UNITS
	SUM(Y0, Y1, Y2, Y3, X0, X1)
	ADD(X0, X1, (R13), (DI))
	SUM(Y4, Y5, Y6, Y7, X4, X5)
	ADD(X4, X5, 4(R13), (DI)(SI*1))
	NEXT(outputs)

// func row1AVX2(p *product)
TEXT ·row1AVX2(SB), NOSPLIT, $0-8
	BEGIN

outputs:
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3
	MOVQ  R8, BX
	MOVQ  R10, R12
	MOVQ  p+0(FP), R13
	MOVQ  product_inputs(R13), R13

inputs:
	VPMOVSXBW (BX), Y8
	VPMOVSXBW (BX)(CX*1), Y9
	VPMOVSXBW (BX)(CX*2), Y10
	VPMOVSXBW (BX)(AX*1), Y11
	VMOVDQU   (R12), Y12
	VPMADDWD  Y8, Y12, Y8
	VPADDD    Y8, Y0, Y0
	VPMADDWD  Y9, Y12, Y9
	VPADDD    Y9, Y1, Y1
	VPMADDWD  Y10, Y12, Y10
	VPADDD    Y10, Y2, Y2
	VPMADDWD  Y11, Y12, Y11
	VPADDD    Y11, Y3, Y3
	ADDQ      $16, BX
	ADDQ      $32, R12
	SUBQ      $16, R13
	JG        inputs

	UNITS
	SUM(Y0, Y1, Y2, Y3, X0, X1)
	ADD(X0, X1, (R13), (DI))
	NEXT(outputs)

// HALVE adds the upper half of a register to the lower one.
#define HALVE(Z, Y) \
	VEXTRACTI64X4 $1, Z, Y20 \
	VPADDD        Y20, Y, Y

// The weights are signed, but the instruction for bytes takes one unsigned factor: 128 is added to them,
// and LESS subtracts 128 times the sum of the row's inputs again.
#define SIGNS \
	MOVL         $0x80808080, R13 \
	VPBROADCASTD R13, Z21

#define WEIGHTS \
	VPXORD (BX), Z21, Z16 \
	VPXORD (BX)(CX*1), Z21, Z17 \
	VPXORD (BX)(CX*2), Z21, Z18 \
	VPXORD (BX)(AX*1), Z21, Z19

#define MULTIPLY(row, Z0, Z1, Z2, Z3) \
	VMOVDQU64 row, Z20 \
	VPDPBUSD  Z20, Z16, Z0 \
	VPDPBUSD  Z20, Z17, Z1 \
	VPDPBUSD  Z20, Z18, Z2 \
	VPDPBUSD  Z20, Z19, Z3

#define SUMS \
	MOVQ p+0(FP), R12 \
	MOVQ product_sums(R12), R12

#define LESS(sum, X0, X1) \
	VPBROADCASTD sum, X1 \
	VPSLLD       $7, X1, X1 \
	VPSUBD       X1, X0, X0

// func rows4VNNI(p *product)
TEXT ·rows4VNNI(SB), NOSPLIT, $0-8
	BEGIN
	SHRQ $1, R11
	LEAQ (SI)(SI*2), R14
	LEAQ (R11)(R11*2), R15
	SIGNS

outputs:
	VPXORD Z0, Z0, Z0
	VPXORD Z1, Z1, Z1
	VPXORD Z2, Z2, Z2
	VPXORD Z3, Z3, Z3
	VPXORD Z4, Z4, Z4
	VPXORD Z5, Z5, Z5
	VPXORD Z6, Z6, Z6
	VPXORD Z7, Z7, Z7
	VPXORD Z8, Z8, Z8
	VPXORD Z9, Z9, Z9
	VPXORD Z10, Z10, Z10
	VPXORD Z11, Z11, Z11
	VPXORD Z12, Z12, Z12
	VPXORD Z13, Z13, Z13
	VPXORD Z14, Z14, Z14
	VPXORD Z15, Z15, Z15
	MOVQ   R8, BX
	MOVQ   R10, R12
	MOVQ   p+0(FP), R13
	MOVQ   product_inputs(R13), R13

inputs:
	WEIGHTS
	MULTIPLY((R12), Z0, Z1, Z2, Z3)
	MULTIPLY((R12)(R11*1), Z4, Z5, Z6, Z7)
	MULTIPLY((R12)(R11*2), Z8, Z9, Z10, Z11)
	MULTIPLY((R12)(R15*1), Z12, Z13, Z14, Z15)
	ADDQ $64, BX
	ADDQ $64, R12
	SUBQ $64, R13
	JG   inputs

	HALVE(Z0, Y0)
	HALVE(Z1, Y1)
	HALVE(Z2, Y2)
	HALVE(Z3, Y3)
	HALVE(Z4, Y4)
	HALVE(Z5, Y5)
	HALVE(Z6, Y6)
	HALVE(Z7, Y7)
	HALVE(Z8, Y8)
	HALVE(Z9, Y9)
	HALVE(Z10, Y10)
	HALVE(Z11, Y11)
	HALVE(Z12, Y12)
	HALVE(Z13, Y13)
	HALVE(Z14, Y14)
	HALVE(Z15, Y15)
	UNITS
	SUMS
	SUM(Y0, Y1, Y2, Y3, X0, X1)
	LESS((R12), X0, X1)
	ADD(X0, X1, (R13), (DI))
	SUM(Y4, Y5, Y6, Y7, X4, X5)
	LESS(4(R12), X4, X5)
	ADD(X4, X5, 4(R13), (DI)(SI*1))
	SUM(Y8, Y9, Y10, Y11, X8, X9)
	LESS(8(R12), X8, X9)
	ADD(X8, X9, 8(R13), (DI)(SI*2))
	SUM(Y12, Y13, Y14, Y15, X12, X13)
	LESS(12(R12), X12, X13)
	ADD(X12, X13, 12(R13), (DI)(R14*1))
	NEXT(outputs)

// func row1VNNI(p *product)
TEXT ·row1VNNI(SB), NOSPLIT, $0-8
	BEGIN
	SIGNS

outputs:
	VPXORD Z0, Z0, Z0
	VPXORD Z1, Z1, Z1
	VPXORD Z2, Z2, Z2
	VPXORD Z3, Z3, Z3
	MOVQ   R8, BX
	MOVQ   R10, R12
	MOVQ   p+0(FP), R13
	MOVQ   product_inputs(R13), R13

inputs:
	WEIGHTS
	MULTIPLY((R12), Z0, Z1, Z2, Z3)
	ADDQ $64, BX
	ADDQ $64, R12
	SUBQ $64, R13
	JG   inputs

	HALVE(Z0, Y0)
	HALVE(Z1, Y1)
	HALVE(Z2, Y2)
	HALVE(Z3, Y3)
	UNITS
	SUMS
	SUM(Y0, Y1, Y2, Y3, X0, X1)
	LESS((R12), X0, X1)
	ADD(X0, X1, (R13), (DI))
	NEXT(outputs)
