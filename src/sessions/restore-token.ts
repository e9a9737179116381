import { createHmac, type KeyObject } from 'node:crypto'
import type { AuthContext } from '../context'
import { isUnderAny } from '../core/keys'
import type { UserRecord } from '../store/auth-store'
import { epochSeconds, readPrivateToken, signPrivateToken } from './challenge'

const typ = 'account-restore'
const validSeconds = 900

/** Brings back an account whose owner has just logged in. Good for this request of a deletion alone. */
export function signRestoreToken(ctx: Pick<AuthContext, 'keys' | 'now'>, user: UserRecord): string {
  const iat = epochSeconds(ctx.now())
  const [key] = ctx.keys['account-restore']
  return signPrivateToken(key, { dig: digestOf(key, user), exp: iat + validSeconds, iat, sub: user.id, typ })
}

interface RestoreToken {
  readonly userId: string
  readonly digest: string
}

/** Null if the token is not ours, or has expired. */
export function readRestoreToken(ctx: Pick<AuthContext, 'keys' | 'now'>, token: string): RestoreToken | null {
  const claims = readPrivateToken(ctx.keys['account-restore'], token, { typ, at: ctx.now() })
  return claims && { userId: String(claims['sub']), digest: String(claims['dig']) }
}

export function isOfRequest({ keys }: Pick<AuthContext, 'keys'>, user: UserRecord, { digest }: RestoreToken): boolean {
  return isUnderAny(keys['account-restore'], (key) => digestOf(key, user) === digest)
}

/** The password too: after its change, whoever had the old one cannot come back. */
function digestOf(key: KeyObject, { id, email, hashedPassword, deletionRequestedAt }: UserRecord): string {
  const text = JSON.stringify([id, email, hashedPassword, deletionRequestedAt?.getTime() ?? null])
  return createHmac('sha256', key).update(text).digest('base64url')
}
