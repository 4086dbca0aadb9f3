-- Has dead entries wait again: those of the numbers, or all.
return {raise(numbers(2), insert)}
