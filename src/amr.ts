/**
 * Authentication methods of a session (`amr`, in the style of RFC 8176). `ext` (external provider), `email` (a mailed link or code) and
 * `passkey` are ours, because the registry has no names for them.
 */
export type AuthMethod = 'pwd' | 'ext' | 'otp' | 'email' | 'passkey'

const methods: ReadonlySet<string> = new Set<AuthMethod>(['pwd', 'ext', 'otp', 'email', 'passkey'])

export function isAuthMethod(value: unknown): value is AuthMethod {
  return typeof value === 'string' && methods.has(value)
}

/**
 * Returns true for a method of a second factor. A passkey counts as two factors, because its user was verified. Two first-step methods, such
 * as `pwd` and `ext`, are not two factors.
 */
export function isSecondFactor(method: AuthMethod): boolean {
  return method === 'otp' || method === 'passkey'
}

/** Returns the methods as they are stored: in one text, separated by spaces. */
export function amrToText(amr: readonly AuthMethod[]): string {
  return amr.join(' ')
}

/** Returns the methods of a stored text. Rows that are older than the column hold null and have no methods. */
export function amrFromText(text: string | null): AuthMethod[] {
  return (text ?? '').split(' ').filter(isAuthMethod)
}
