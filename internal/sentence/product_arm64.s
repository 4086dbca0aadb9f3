#include "textflag.h"
#include "go_asm.h"

// The assembler lacks signed vector instructions.
#define SXTL(n, d) WORD $(0x0F08A400 | n<<5 | d)   // low 8 bytes to 8 halves
#define SXTL2(n, d) WORD $(0x4F08A400 | n<<5 | d)  // high 8 bytes
#define SMLAL(m, n, d) WORD $(0x0E608000 | m<<16 | n<<5 | d)  // low 4 halves, products added to 4 sums
#define SMLAL2(m, n, d) WORD $(0x4E608000 | m<<16 | n<<5 | d) // high 4 halves
#define SCVTF(n, d) WORD $(0x4E21D800 | n<<5 | d)
#define FMUL4(m, n, d) WORD $(0x6E20DC00 | m<<16 | n<<5 | d)
#define FADD4(m, n, d) WORD $(0x4E20D400 | m<<16 | n<<5 | d)
#define SDOT(m, n, d) WORD $(0x4E809400 | m<<16 | n<<5 | d)   // 16 bytes, products of four added to each of 4 sums

// All functions compute four outputs at once. R8, R12, R13 and R14 point to the weights of each.
#define BEGIN \
	MOVD  p+0(FP), R0 \
	MOVD  product_out(R0), R1 \
	MOVD  product_outStep(R0), R2 \
	LSL   $2, R2, R2 \
	MOVD  product_weights(R0), R3 \
	MOVD  product_step(R0), R4 \
	MOVD  product_scale(R0), R5 \
	MOVD  product_in(R0), R6 \
	MOVD  product_inStep(R0), R7 \
	LSL   $1, R7, R7 \
	MOVD  product_outputs(R0), R9 \
	MOVD  product_inputs(R0), R10 \
	MOVD  product_units(R0), R0

#define POINT \
	MOVD R3, R8 \
	ADD  R4, R8, R12 \
	ADD  R4, R12, R13 \
	ADD  R4, R13, R14 \
	MOVD R6, R15 \
	MOVD R10, R11

// WEIGHTS loads 16 weights of each output, as halves, to V12 to V19.
#define WEIGHTS \
	VLD1.P 16(R8), [V8.B16] \
	VLD1.P 16(R12), [V9.B16] \
	VLD1.P 16(R13), [V10.B16] \
	VLD1.P 16(R14), [V11.B16] \
	SXTL(8, 12) \
	SXTL2(8, 13) \
	SXTL(9, 14) \
	SXTL2(9, 15) \
	SXTL(10, 16) \
	SXTL2(10, 17) \
	SXTL(11, 18) \
	SXTL2(11, 19)

// MULTIPLY adds the products of the 16 inputs in registers i and j and the halves in w and v.
#define MULTIPLY(i, j, w, v, sum) \
	SMLAL(i, w, sum) \
	SMLAL2(i, w, sum) \
	SMLAL(j, v, sum) \
	SMLAL2(j, v, sum)

// ADDTO adds the four sums in A to D, times the scales in V31 and the unit of the row, to the outputs at R.
#define ADDTO(A, B, C, D, a, unit, R) \
	FMOVS unit, F30 \
	VDUP  V30.S[0], V30.S4 \
	FMUL4(31, 30, 30) \
	VADDP B.S4, A.S4, A.S4 \
	VADDP D.S4, C.S4, C.S4 \
	VADDP C.S4, A.S4, A.S4 \
	SCVTF(a, a) \
	FMUL4(30, a, a) \
	VLD1  (R), [V29.S4] \
	FADD4(29, a, a) \
	VST1  [A.S4], (R)

#define SCALES \
	VLD1.P 16(R5), [V31.S4]

#define NEXT \
	ADD  R4<<2, R3, R3 \
	ADD  $16, R1, R1 \
	SUBS $4, R9, R9 \
	BGT  outputs \
	RET

// func rows2NEON(p *product)
TEXT ·rows2NEON(SB), NOSPLIT, $0-8
	BEGIN

outputs:
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V1.B16, V1.B16, V1.B16
	VEOR V2.B16, V2.B16, V2.B16
	VEOR V3.B16, V3.B16, V3.B16
	VEOR V4.B16, V4.B16, V4.B16
	VEOR V5.B16, V5.B16, V5.B16
	VEOR V6.B16, V6.B16, V6.B16
	VEOR V7.B16, V7.B16, V7.B16
	POINT
	ADD  R7, R6, R16

inputs:
	WEIGHTS
	VLD1.P 32(R15), [V20.H8, V21.H8]
	VLD1.P 32(R16), [V22.H8, V23.H8]
	MULTIPLY(20, 21, 12, 13, 0)
	MULTIPLY(20, 21, 14, 15, 1)
	MULTIPLY(20, 21, 16, 17, 2)
	MULTIPLY(20, 21, 18, 19, 3)
	MULTIPLY(22, 23, 12, 13, 4)
	MULTIPLY(22, 23, 14, 15, 5)
	MULTIPLY(22, 23, 16, 17, 6)
	MULTIPLY(22, 23, 18, 19, 7)
	SUBS $16, R11, R11
	BGT  inputs

	SCALES
	ADD R2, R1, R17
	ADDTO(V0, V1, V2, V3, 0, (R0), R1)
	ADDTO(V4, V5, V6, V7, 4, 4(R0), R17)
	NEXT

// func row1NEON(p *product)
TEXT ·row1NEON(SB), NOSPLIT, $0-8
	BEGIN

outputs:
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V1.B16, V1.B16, V1.B16
	VEOR V2.B16, V2.B16, V2.B16
	VEOR V3.B16, V3.B16, V3.B16
	POINT

inputs:
	WEIGHTS
	VLD1.P 32(R15), [V20.H8, V21.H8]
	MULTIPLY(20, 21, 12, 13, 0)
	MULTIPLY(20, 21, 14, 15, 1)
	MULTIPLY(20, 21, 16, 17, 2)
	MULTIPLY(20, 21, 18, 19, 3)
	SUBS $16, R11, R11
	BGT  inputs

	SCALES
	ADDTO(V0, V1, V2, V3, 0, (R0), R1)
	NEXT

// BYTEWEIGHTS loads 16 weights of each output.
#define BYTEWEIGHTS \
	VLD1.P 16(R8), [V16.B16] \
	VLD1.P 16(R12), [V17.B16] \
	VLD1.P 16(R13), [V18.B16] \
	VLD1.P 16(R14), [V19.B16]

// func rows4SDOT(p *product)
TEXT ·rows4SDOT(SB), NOSPLIT, $0-8
	BEGIN
	LSR $1, R7, R7

outputs:
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V1.B16, V1.B16, V1.B16
	VEOR V2.B16, V2.B16, V2.B16
	VEOR V3.B16, V3.B16, V3.B16
	VEOR V4.B16, V4.B16, V4.B16
	VEOR V5.B16, V5.B16, V5.B16
	VEOR V6.B16, V6.B16, V6.B16
	VEOR V7.B16, V7.B16, V7.B16
	VEOR V8.B16, V8.B16, V8.B16
	VEOR V9.B16, V9.B16, V9.B16
	VEOR V10.B16, V10.B16, V10.B16
	VEOR V11.B16, V11.B16, V11.B16
	VEOR V12.B16, V12.B16, V12.B16
	VEOR V13.B16, V13.B16, V13.B16
	VEOR V14.B16, V14.B16, V14.B16
	VEOR V15.B16, V15.B16, V15.B16
	POINT
	ADD R7, R6, R16
	ADD R7, R16, R17
	ADD R7, R17, R19

inputs:
	BYTEWEIGHTS
	VLD1.P 16(R15), [V20.B16]
	VLD1.P 16(R16), [V21.B16]
	VLD1.P 16(R17), [V22.B16]
	VLD1.P 16(R19), [V23.B16]
	SDOT(20, 16, 0)
	SDOT(20, 17, 1)
	SDOT(20, 18, 2)
	SDOT(20, 19, 3)
	SDOT(21, 16, 4)
	SDOT(21, 17, 5)
	SDOT(21, 18, 6)
	SDOT(21, 19, 7)
	SDOT(22, 16, 8)
	SDOT(22, 17, 9)
	SDOT(22, 18, 10)
	SDOT(22, 19, 11)
	SDOT(23, 16, 12)
	SDOT(23, 17, 13)
	SDOT(23, 18, 14)
	SDOT(23, 19, 15)
	SUBS $16, R11, R11
	BGT  inputs

	SCALES
	ADDTO(V0, V1, V2, V3, 0, (R0), R1)
	ADD R2, R1, R17
	ADDTO(V4, V5, V6, V7, 4, 4(R0), R17)
	ADD R2, R17, R17
	ADDTO(V8, V9, V10, V11, 8, 8(R0), R17)
	ADD R2, R17, R17
	ADDTO(V12, V13, V14, V15, 12, 12(R0), R17)
	NEXT

// func row1SDOT(p *product)
TEXT ·row1SDOT(SB), NOSPLIT, $0-8
	BEGIN

outputs:
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V1.B16, V1.B16, V1.B16
	VEOR V2.B16, V2.B16, V2.B16
	VEOR V3.B16, V3.B16, V3.B16
	POINT

inputs:
	BYTEWEIGHTS
	VLD1.P 16(R15), [V20.B16]
	SDOT(20, 16, 0)
	SDOT(20, 17, 1)
	SDOT(20, 18, 2)
	SDOT(20, 19, 3)
	SUBS $16, R11, R11
	BGT  inputs

	SCALES
	ADDTO(V0, V1, V2, V3, 0, (R0), R1)
	NEXT
