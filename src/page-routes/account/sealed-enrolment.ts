import type { AuthContext } from '../../context'
import { openText, sealText } from '../../sealing'
import type { SessionOfRequest } from '../../step-up/fresh-session'

/** The enrolment that its page shows again after a mistyped code. */
export interface PageEnrolment {
  /** Base32. */
  readonly secret: string
  readonly recoveryCodes: readonly string[]
}

/** As long as a pending enrolment waits for its first code. */
const lifeSeconds = 900

/** Returns an encrypted text for a hidden field, valid for 15 minutes and only in this session. */
export function sealEnrolment(ctx: AuthContext, session: SessionOfRequest, { secret, recoveryCodes }: PageEnrolment): string {
  return sealText(keysOf(ctx), purposeOf(session), JSON.stringify([ctx.now().getTime() + lifeSeconds * 1000, secret, recoveryCodes]))
}

/** Returns null if the text is not ours, of another session, or too old. */
export function openEnrolment(ctx: AuthContext, session: SessionOfRequest, sealed: string): PageEnrolment | null {
  const text = openText(keysOf(ctx), purposeOf(session), sealed)
  if (text === null) return null
  const [end, secret, recoveryCodes] = JSON.parse(text) as [number, string, string[]] // as `sealEnrolment` wrote it
  return end > ctx.now().getTime() ? { secret, recoveryCodes } : null
}

function purposeOf({ user, session }: SessionOfRequest): string {
  return `enrolment of ${user.id} in ${session?.id ?? 'no session'}`
}

function keysOf({ keys }: AuthContext): Buffer[] {
  return keys['enrolment-page'].map((key) => key.export())
}
