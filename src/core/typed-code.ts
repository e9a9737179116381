const longestTyped = 256

/**
 * Returns a code as doorward compares it: without blanks, dashes and invisible marks, and with the digits 0 to 9. People copy codes in
 * groups, password managers add invisible marks, and keyboards and apps write the digits of their script. A text that is too long for a
 * code stays as it is, because its normalization could take long.
 */
export function readTypedCode(typed: string): string {
  if (typed.length > longestTyped) return typed
  return typed
    .normalize('NFKC')
    .replace(/[\s\p{Pd}\u2212\p{Cf}\p{Default_Ignorable_Code_Point}]/gu, '')
    .replace(/\p{Nd}/gu, digitOf)
}

/** Returns the value of a digit. In every script the digits stand next to each other, from zero to nine (Unicode 4.6, Decimal Digits). */
function digitOf(digit: string): string {
  const point = digit.codePointAt(0) ?? 0
  let below = 0
  while (/^\p{Nd}$/u.test(String.fromCodePoint(point - below - 1))) below++
  return String(below % 10)
}
