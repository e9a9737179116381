import { createHash } from 'node:crypto'
import { encode } from 'uqr'
import { type AuthContext, transaction } from '../context'
import { MfaAlreadyEnrolledError, UnauthorizedError } from '../core/errors'
import { shape, string } from '../http/description'
import type { Locale } from '../http/locale'
import { holdSession } from '../sessions/reauthentication/fresh-session'
import type { Irreversibility } from '../sessions/reauthentication/irreversible-change'
import { refuseYoungFactor } from '../sessions/reauthentication/methods'
import type { SessionRecord, UserRecord } from '../store/auth-store'
import { announceFactor, hashRecoveryCode, newRecoveryCodes, newTotpSecret, provisioningUri, recoveryCodesOf } from './accept-code'
import { type PresentedFactor, withFactor } from './irreversible-code'
import { sealSecret } from './secret-box'

export interface Enrolment {
  /** In base32. */
  secret: string
  provisioningUri: string
  /** Of `provisioningUri`, as an SVG document. */
  qrSvg: string
  recoveryCodes: string[]
}

export const enrolmentSchema = shape('Enrolment', {
  secret: string,
  provisioning_uri: string,
  qr_svg: string,
  recovery_codes: { type: 'array', items: string },
})

export function enrolmentBody({
  secret,
  provisioningUri: provisioning_uri,
  qrSvg: qr_svg,
  recoveryCodes: recovery_codes,
}: Enrolment): object {
  return { secret, provisioning_uri, qr_svg, recovery_codes }
}

/** Throws if the locked user row does not allow the enrolment. `ctx` is the context of the transaction. */
type UserCheck = (ctx: AuthContext, user: UserRecord) => Promise<void> | void

/**
 * With a code, a recovery code or a passkey, the new factor replaces the active one. A passkey makes a first factor final (no undo link).
 */
export interface EnrolmentOptions extends PresentedFactor {
  /** The only session that may confirm the factor. Null: any session of the account. */
  session?: SessionRecord | null
  /** The login that may confirm the factor, in place of a session (`login-tasks/`). */
  owner?: string
  check?: UserCheck
  /** Language of the notices. Default: `defaultLocale`. */
  locale?: Locale | undefined
}

/**
 * The pending secret has no effect until one of its codes confirms it. A second call begins again with a new secret. To replace an active
 * factor, show it or a passkey. The old factor stays valid until the new one is confirmed.
 * @throws UnauthorizedError, InvalidTokenError (the session has ended), MfaAlreadyEnrolledError (a factor is active, and none is shown);
 * with a code MfaNotEnrolledError, MfaCodeInvalidError, MfaThrottledError; with a passkey PasskeyRejectedError; both MfaFactorTooNewError
 */
export async function enrollTotp(
  ctx: AuthContext,
  userId: string,
  { session = null, owner, check = () => undefined, locale, ...presented }: EnrolmentOptions = {},
): Promise<Enrolment> {
  const secret = newTotpSecret()
  const recoveryCodes = newRecoveryCodes(ctx.settings.mfaRecoveryCodesCount)
  const hashes = recoveryCodes.map((code) => hashRecoveryCode(userId, code))
  const begun = { session, owner: owner ?? session?.id ?? null, check, sealed: sealSecret(ctx.mfaSecretKeys, userId, secret), hashes }
  const isShown = presented.code !== undefined || presented.credential !== undefined
  const user = isShown ? await beginConfirmed(ctx, userId, begun, { ...presented, locale }) : await beginFirst(ctx, userId, begun)
  return { secret, ...forAuthenticatorApp(ctx, user.email, secret), recoveryCodes }
}

export function forAuthenticatorApp(
  { settings }: AuthContext,
  account: string,
  secret: string,
): Pick<Enrolment, 'provisioningUri' | 'qrSvg'> {
  const uri = provisioningUri({ secret, issuer: settings.mfaIssuer ?? '', account })
  return { provisioningUri: uri, qrSvg: qrCode(uri) }
}

interface Begun {
  readonly session: SessionRecord | null
  /** The id of the session or of the login that may confirm the factor. Null: any session of the account. */
  readonly owner: string | null
  readonly check: UserCheck
  readonly sealed: string
  readonly hashes: readonly string[]
}

function beginFirst(ctx: AuthContext, userId: string, begun: Begun): Promise<UserRecord> {
  return transaction(ctx, async (ctx) => {
    const user = await lockAsking(ctx, userId, begun)
    if (user.totpEnabledAt) throw new MfaAlreadyEnrolledError()
    await storePending(ctx, userId, begun, false)
    return user
  })
}

/** The active factor stays required until the confirmation, so access to the mailbox alone is never enough to log in. */
async function beginConfirmed(
  ctx: AuthContext,
  userId: string,
  begun: Begun,
  { locale, ...presented }: PresentedFactor & { locale: Locale | undefined },
): Promise<UserRecord> {
  const { user, factor } = await withFactor(ctx, { userId, session: begun.session, locale }, presented, (accept) =>
    transaction(ctx, async (ctx) => {
      const user = await lockAsking(ctx, userId, begun)
      if (presented.credential === undefined) refuseYoungFactor(ctx, user)
      const { factor, isFinal } = await accept(ctx, user)
      if (user.totpEnabledAt) await beginEnrolment(ctx, userId, { secret: begun.sealed, recoveryCodes: begun.hashes, isFinal }, begun.owner)
      else await storePending(ctx, userId, begun, isFinal)
      return { user, factor }
    }),
  )
  announceFactor(ctx, user, factor, locale)
  return user
}

async function lockAsking(ctx: AuthContext, userId: string, { session, check }: Begun): Promise<UserRecord> {
  const user = await ctx.store.users.lock(userId)
  if (!user?.isActive) throw new UnauthorizedError()
  await holdSession(ctx, session)
  await check(ctx, user)
  return user
}

async function storePending(ctx: AuthContext, userId: string, { sealed, hashes, owner }: Begun, isFinal: Irreversibility): Promise<void> {
  await ctx.store.users.update(userId, { totpSecret: sealed, totpLastStep: null })
  await beginEnrolment(ctx, userId, { secret: sealed, recoveryCodes: null, isFinal }, owner)
  await recoveryCodesOf(ctx).replaceForUser(userId, hashes)
}

const lifeSeconds = 900

interface BegunFactor {
  /** Encrypted, as in the user's row. */
  readonly secret: string
  /** Hashes. Null for the account's first factor, whose recovery codes the table already has. */
  readonly recoveryCodes: readonly string[] | null
  /** If not false, an undo link cannot remove the factor. The factor shown at the start of the enrolment decides. */
  readonly isFinal: Irreversibility
}

/** In the token's row, so that the user's row does not change before the confirmation. */
export interface Replacement extends BegunFactor {
  readonly recoveryCodes: readonly string[]
}

/**
 * For 15 minutes. The session may finish the enrolment even when it is no longer fresh. Call it inside the transaction that stores the
 * pending secret.
 * @param begun each enrolment has a different secret
 * @param owner null: any session of the account may finish it, as for the host, or if the store keeps no sessions
 */
async function beginEnrolment(ctx: AuthContext, userId: string, begun: BegunFactor, owner: string | null): Promise<void> {
  const now = ctx.now()
  await ctx.store.userTokens.consumeAllForUser(userId, now, 'MFA_ENROLMENT')
  await ctx.store.userTokens.insert({
    userId,
    tokenHash: enrolmentHash(userId, begun.secret),
    purpose: 'MFA_ENROLMENT',
    payload: writePayload(owner, begun),
    expiresAt: new Date(now.getTime() + lifeSeconds * 1000),
    usedAt: null,
    createdAt: now,
  })
}

/** Begun within the last 15 minutes. */
export async function findReplacement(ctx: AuthContext, userId: string): Promise<Replacement | null> {
  const begun = await findBegun(ctx, userId)
  return begun?.recoveryCodes ? { ...begun, recoveryCodes: begun.recoveryCodes } : null
}

/** Whether an undo link can remove a first factor. False after 15 minutes, or if another enrolment began later (another secret). */
export async function irreversibilityOfFirst(ctx: AuthContext, userId: string, secret: string): Promise<Irreversibility> {
  const begun = await findBegun(ctx, userId)
  return begun?.secret === secret && begun.isFinal
}

/** Null without an open enrolment, or if the row has only the session's id: a first factor that no passkey confirmed. */
async function findBegun(ctx: AuthContext, userId: string): Promise<BegunFactor | null> {
  const [begun] = await ctx.store.userTokens.listOpen(userId, 'MFA_ENROLMENT', ctx.now())
  return begun ? readPayload(begun.payload).factor : null
}

/** True once, for the session that began this secret's enrolment within 15 minutes. Call it in the activating transaction. */
export async function finishEnrolment(
  ctx: AuthContext,
  userId: string,
  secret: string,
  session: Pick<SessionRecord, 'id'> | null,
  { mustOwn = false }: { mustOwn?: boolean } = {},
): Promise<boolean> {
  const begun = await ctx.store.userTokens.find(enrolmentHash(userId, secret))
  if (begun?.userId !== userId) return false
  const { sessionId } = readPayload(begun.payload)
  if ((sessionId !== null || mustOwn) && sessionId !== session?.id) return false
  return (await ctx.store.userTokens.consume(begun.tokenHash, 'MFA_ENROLMENT', ctx.now())) !== null
}

function enrolmentHash(userId: string, secret: string): string {
  return createHash('sha256')
    .update(JSON.stringify(['mfa-enrolment', userId, secret]))
    .digest('hex')
}

/**
 * The session's id alone if nothing else must be stored. Hashes are base64url, because 50 of them must fit in the column (`payloadLength`).
 */
function writePayload(sessionId: string | null, { secret, recoveryCodes, isFinal }: BegunFactor): string | null {
  if (recoveryCodes === null && isFinal === false) return sessionId
  const codes = recoveryCodes?.map((hash) => Buffer.from(hash, 'hex').toString('base64url')) ?? null
  return JSON.stringify([sessionId, secret, isFinal, codes])
}

function readPayload(payload: string | null): { sessionId: string | null; factor: BegunFactor | null } {
  if (!payload?.startsWith('[')) return { sessionId: payload, factor: null }
  const [sessionId, secret, isFinal, codes] = JSON.parse(payload) as [string | null, string, Irreversibility, string[] | null] // as `writePayload` wrote it
  const recoveryCodes = codes?.map((code) => Buffer.from(code, 'base64url').toString('hex')) ?? null
  return { sessionId, factor: { secret, isFinal, recoveryCodes } }
}

/** One stroke for each run of dark squares: a stroke for each square would make the SVG too large for a page. */
function qrCode(text: string): string {
  const { data, size } = encode(text, { ecc: 'M' })
  const runs = data.flatMap((row, y) => runsOf(row).map(([x, length]) => `M${x} ${y}.5h${length}`))
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size} ${size}" shape-rendering="crispEdges"><rect fill="white" width="${size}" height="${size}"/><path stroke="black" d="${runs.join('')}"/></svg>`
}

function runsOf(row: readonly boolean[]): [start: number, length: number][] {
  const runs: [number, number][] = []
  row.forEach((isDark, x) => {
    const last = runs.at(-1)
    if (isDark && last && last[0] + last[1] === x) last[1] += 1
    else if (isDark) runs.push([x, 1])
  })
  return runs
}
