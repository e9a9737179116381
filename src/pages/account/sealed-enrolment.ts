import type { AuthContext } from '../../context'
import { openText, sealText } from '../../core/sealing'
import type { SessionOfRequest } from '../../sessions/reauthentication/fresh-session'

/** The pending second factor. If the person mistypes the code, the page shows the same secret again. */
export interface PageEnrolment {
  /** The secret in base32. */
  readonly secret: string
  readonly recoveryCodes: readonly string[]
}

/** The lifetime of the encrypted text, in seconds. A pending second factor has the same lifetime. */
const lifeSeconds = 900

/** Returns an encrypted text for a hidden field. The text is valid for 15 minutes, and only in this session. */
export function sealEnrolment(ctx: AuthContext, session: SessionOfRequest, { secret, recoveryCodes }: PageEnrolment): string {
  return sealText(keysOf(ctx), purposeOf(session), JSON.stringify([ctx.now().getTime() + lifeSeconds * 1000, secret, recoveryCodes]))
}

/**
 * Decrypts a text of `sealEnrolment`. Returns null for an expired text, a text for another session, and a text that this server did not
 * encrypt.
 */
export function openEnrolment(ctx: AuthContext, session: SessionOfRequest, sealed: string): PageEnrolment | null {
  const text = openText(keysOf(ctx), purposeOf(session), sealed)
  if (text === null) return null
  const [end, secret, recoveryCodes] = JSON.parse(text) as [number, string, string[]] // `sealEnrolment` wrote the JSON
  return end > ctx.now().getTime() ? { secret, recoveryCodes } : null
}

function purposeOf({ user, session }: SessionOfRequest): string {
  return `enrolment of ${user.id} in ${session?.id ?? 'no session'}`
}

function keysOf({ keys }: AuthContext): Buffer[] {
  return keys['enrolment-page'].map((key) => key.export())
}
