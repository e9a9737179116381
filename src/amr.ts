/**
 * Authentication method references (RFC 8176 style): which methods actually ran for a session.
 * `ext` (external provider), `email` (a mailed link) and `passkey` are ours; the registry has none of them.
 */
export type AuthMethod = 'pwd' | 'ext' | 'otp' | 'email' | 'passkey'

const methods: ReadonlySet<string> = new Set<AuthMethod>(['pwd', 'ext', 'otp', 'email', 'passkey'])

export function isAuthMethod(value: unknown): value is AuthMethod {
  return typeof value === 'string' && methods.has(value)
}

/** What a second factor adds; a passkey is two by itself, since its user was verified. Two first steps, `pwd` and `ext` say, are not two factors. */
export function isSecondFactor(method: AuthMethod): boolean {
  return method === 'otp' || method === 'passkey'
}

/** How the list is kept on a refresh-token row: space separated. */
export function amrToText(amr: readonly AuthMethod[]): string {
  return amr.join(' ')
}

/** Rows written before the column existed hold null: they carry no method. */
export function amrFromText(text: string | null): AuthMethod[] {
  return (text ?? '').split(' ').filter(isAuthMethod)
}
