/** The methods of a session (`amr`, RFC 8176). doorward adds `ext` (external provider), `email` (a mailed link or code) and `passkey`. */
export type AuthMethod = 'pwd' | 'ext' | 'otp' | 'email' | 'passkey'

const methods: ReadonlySet<string> = new Set<AuthMethod>(['pwd', 'ext', 'otp', 'email', 'passkey'])

export function isAuthMethod(value: unknown): value is AuthMethod {
  return typeof value === 'string' && methods.has(value)
}

/** A passkey counts as two factors: the authenticator verified its user. Two methods of the first step (`pwd`, `ext`) do not. */
export function isSecondFactor(method: AuthMethod): boolean {
  return method === 'otp' || method === 'passkey'
}

export function amrToText(amr: readonly AuthMethod[]): string {
  return amr.join(' ')
}

/** Marks a lost last method. An empty text means unknown methods, and then the methods of the request's access token count. */
export const noMethods = 'none'

/** Null in rows from before the column existed: no methods. */
export function amrFromText(text: string | null): AuthMethod[] {
  return (text ?? '').split(' ').filter(isAuthMethod)
}
