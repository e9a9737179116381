import { randomUUID } from 'node:crypto'
import { hashCode, isCodeOf, mostTries, newCode } from '../accounts/email-links/email-link'
import { mailCode } from '../accounts/email-links/send-mail'
import type { AuthContext } from '../context'
import { readAddress } from '../core/client-key'
import { EmailLoginInvalidError } from '../core/errors'
import { browserName } from '../http/locale'
import { type AppliedLimit, type CountedAttempt, countAttempt, tryToCount } from '../rate-limits/rate-limiter'
import { after } from '../sessions/find-session'
import { plainText } from '../sessions/insert-session'
import type { LoginClient } from '../sessions/login'
import type { EmailLoginStore, UserRecord } from '../store/auth-store'

const seconds = 600

/** A code for the mailbox. The plain code is mailed once and never stored. */
export interface DeviceCode {
  readonly id: string
  readonly user: UserRecord
  readonly digits: string
  readonly expiresAt: Date
  readonly client: LoginClient
}

/** Call it in the transaction of the login. A login beyond the limit of mails gets a row too, so that nothing distinguishes it. */
export async function issueDeviceCode(ctx: AuthContext, user: UserRecord, client: LoginClient): Promise<DeviceCode> {
  const [now, id, digits] = [ctx.now(), randomUUID(), newCode()]
  const expiresAt = after(now, seconds)
  await deviceCodesOf(ctx).insert({
    id,
    email: user.email,
    purpose: 'DEVICE',
    tokenHash: null,
    codeHash: hashCode(ctx, id, digits),
    tries: 0,
    returnTo: null,
    sessionId: null,
    isKnownDevice: false,
    ip: plainText(client.origin.ip, 45),
    userAgent: plainText(client.origin.userAgent, 512),
    createdAt: now,
    expiresAt,
    usedAt: null,
  })
  return { id, user, digits, expiresAt, client }
}

/** Call it after the commit. Past the limit, nothing is mailed and nobody is told; nobody can guess the code. */
export async function mailDeviceCode(ctx: AuthContext, code: DeviceCode): Promise<void> {
  if (await tryToCount(ctx, limitsOf(ctx, code.user))) postDeviceCode(ctx, code)
  else await deviceCodesOf(ctx).consume(code.id, ctx.now())
}

/** @throws TooManyRequestsError before a code is made, for a person who asks for another one */
export function countDeviceCode(ctx: AuthContext, user: UserRecord): Promise<CountedAttempt> {
  return countAttempt(ctx, limitsOf(ctx, user))
}

export function postDeviceCode(ctx: AuthContext, { user, digits, expiresAt, client }: DeviceCode): void {
  const { pagesEnabled, publicUrl, defaultLocale } = ctx.settings
  const url = pagesEnabled && publicUrl !== '' ? `${publicUrl}${ctx.prefix}/forgot-password` : null
  const browser = browserName(client.origin.userAgent ?? '')
  const login = { at: ctx.now(), browser, ip: readAddress(client.origin.ip) }
  mailCode(ctx, user, 'device_code', { url, code: digits, expiresAt }, client.locale ?? defaultLocale, { login })
}

function limitsOf({ rateLimits }: AuthContext, { email }: UserRecord): AppliedLimit[] {
  return rateLimits.mail.deviceCodes.map((rateLimit, index) => ({ name: `mail:device_codes:${index}`, subject: email, rateLimit }))
}

/** Counts the try before it compares the code. @throws EmailLoginInvalidError */
export async function tryDeviceCode(ctx: AuthContext, codeId: string | null, typed: string): Promise<void> {
  const row = codeId === null ? null : await deviceCodesOf(ctx).countTry(codeId, mostTries, ctx.now())
  if (row?.purpose !== 'DEVICE' || !isCodeOf(ctx, row, typed)) throw new EmailLoginInvalidError()
}

/** In the transaction of the step. False: another step used it first. */
export async function useDeviceCode(ctx: AuthContext, codeId: string | null): Promise<boolean> {
  return codeId !== null && deviceCodesOf(ctx).consume(codeId, ctx.now())
}

function deviceCodesOf({ store }: AuthContext): EmailLoginStore {
  if (store.emailLogins) return store.emailLogins
  throw new Error('The store has no `emailLogins`.') // the boot checks have refused it
}
