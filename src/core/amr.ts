/**
 * The authentication methods of a session (`amr`, in the style of RFC 8176). RFC 8176 has no names for `ext` (external provider), `email`
 * (a mailed link or code) and `passkey`, so doorward adds these names.
 */
export type AuthMethod = 'pwd' | 'ext' | 'otp' | 'email' | 'passkey'

const methods: ReadonlySet<string> = new Set<AuthMethod>(['pwd', 'ext', 'otp', 'email', 'passkey'])

export function isAuthMethod(value: unknown): value is AuthMethod {
  return typeof value === 'string' && methods.has(value)
}

/**
 * Returns true if the method counts as a second factor. A passkey counts as two factors, because the authenticator verified its user. Two
 * methods of the first step, for example `pwd` and `ext`, are not two factors.
 */
export function isSecondFactor(method: AuthMethod): boolean {
  return method === 'otp' || method === 'passkey'
}

/** Returns the methods in their stored form: a single text, separated by spaces. */
export function amrToText(amr: readonly AuthMethod[]): string {
  return amr.join(' ')
}

/**
 * The stored text of a session that lost its last method. An empty text says that the methods are unknown, and then the methods of the
 * request's access token count.
 */
export const noMethods = 'none'

/** Returns the methods of a stored text. The text is null in rows from before the column existed. Such rows have no methods. */
export function amrFromText(text: string | null): AuthMethod[] {
  return (text ?? '').split(' ').filter(isAuthMethod)
}
