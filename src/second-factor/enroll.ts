import { createHash } from 'node:crypto'
import { encode } from 'uqr'
import { type AuthContext, transaction } from '../context'
import { MfaAlreadyEnrolledError, UnauthorizedError } from '../core/errors'
import type { Locale } from '../http/locale'
import { holdSession } from '../sessions/reauthentication/fresh-session'
import type { Irreversibility } from '../sessions/reauthentication/irreversible-change'
import { refuseYoungFactor } from '../sessions/reauthentication/methods'
import type { SessionRecord, UserRecord } from '../store/auth-store'
import { announceFactor, hashRecoveryCode, newRecoveryCodes, newTotpSecret, provisioningUri, recoveryCodesOf } from './accept-code'
import { type PresentedFactor, withFactor } from './irreversible-code'
import { sealSecret } from './secret-box'

/** The data of a new factor: the secret for an authenticator app, and the recovery codes. The data is shown only once. */
export interface Enrolment {
  /** The secret for the authenticator app, in base32. */
  secret: string
  provisioningUri: string
  /** The QR code of `provisioningUri`, as an SVG document. */
  qrSvg: string
  recoveryCodes: string[]
}

/** Throws if the locked user row does not allow the enrolment. `ctx` is the context of the transaction. */
type UserCheck = (ctx: AuthContext, user: UserRecord) => Promise<void> | void

/**
 * If these options contain a code of the active factor, a recovery code or a passkey, the new factor replaces the active factor. If a
 * passkey confirms the enrolment of a first factor, an undo link cannot remove that factor.
 */
export interface EnrolmentOptions extends PresentedFactor {
  /** The only session that may confirm the factor. Null: any session of the account may confirm the factor. */
  session?: SessionRecord | null
  check?: UserCheck
  /** Language of the notices. Default: `defaultLocale`. */
  locale?: Locale | undefined
}

/**
 * Begins an enrolment with a pending secret. The secret has no effect until one of its codes confirms the secret. A second call begins
 * again with a new secret. To replace an active factor, pass one of its codes, a recovery code or a passkey. The active factor and its
 * recovery codes stay valid until the new factor is confirmed.
 * @throws UnauthorizedError (the account was deleted or is inactive), InvalidTokenError (the session has ended), MfaAlreadyEnrolledError (a
 *   factor is active, and the call shows no factor); with a code MfaNotEnrolledError, MfaCodeInvalidError, MfaThrottledError,
 *   MfaFactorTooNewError; with a passkey PasskeyRejectedError, MfaFactorTooNewError
 */
export async function enrollTotp(
  ctx: AuthContext,
  userId: string,
  { session = null, check = () => undefined, locale, ...presented }: EnrolmentOptions = {},
): Promise<Enrolment> {
  const secret = newTotpSecret()
  const recoveryCodes = newRecoveryCodes(ctx.settings.mfaRecoveryCodesCount)
  const hashes = recoveryCodes.map((code) => hashRecoveryCode(userId, code))
  const begun = { session, check, sealed: sealSecret(ctx.mfaSecretKeys, userId, secret), hashes }
  const isShown = presented.code !== undefined || presented.credential !== undefined
  const user = isShown ? await beginConfirmed(ctx, userId, begun, { ...presented, locale }) : await beginFirst(ctx, userId, begun)
  return { secret, ...forAuthenticatorApp(ctx, user.email, secret), recoveryCodes }
}

/** Returns the data that an authenticator app scans. */
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

/**
 * Begins an enrolment after a code or a passkey. The active factor stays required until the new factor is confirmed. Therefore access to
 * the mailbox alone is never enough to log in.
 */
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
      if (user.totpEnabledAt)
        await beginEnrolment(ctx, userId, { secret: begun.sealed, recoveryCodes: begun.hashes, isFinal }, begun.session)
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

async function storePending(ctx: AuthContext, userId: string, { sealed, hashes, session }: Begun, isFinal: Irreversibility): Promise<void> {
  await ctx.store.users.update(userId, { totpSecret: sealed, totpLastStep: null })
  await beginEnrolment(ctx, userId, { secret: sealed, recoveryCodes: null, isFinal }, session)
  await recoveryCodesOf(ctx).replaceForUser(userId, hashes)
}

const lifeSeconds = 900

/** A factor that was begun and not yet confirmed. */
interface BegunFactor {
  /** The encrypted secret, as the user's row stores it. */
  readonly secret: string
  /**
   * The hashes of the recovery codes. Null for the account's first factor, because the table already has the recovery codes of a first
   * factor.
   */
  readonly recoveryCodes: readonly string[] | null
  /**
   * If not false, an undo link cannot remove the factor (`Irreversibility`). The factor that the person showed at the start of the enrolment
   * decides this value.
   */
  readonly isFinal: Irreversibility
}

/**
 * A pending factor that will replace the active factor. The token's row stores the pending factor, so the user's row does not change before
 * the confirmation.
 */
export interface Replacement extends BegunFactor {
  /** The hashes of the recovery codes. */
  readonly recoveryCodes: readonly string[]
}

/**
 * Records an enrolment for 15 minutes, together with its session. That session may finish the enrolment even when the session is no longer
 * fresh. Call the function inside the transaction that stores the pending secret.
 * @param begun the new factor: the encrypted secret of the user's row, or a `Replacement`. Each enrolment has a different secret
 * @param session null: any session of the account may finish the enrolment, because the host began the enrolment, or because the store
 *   keeps no sessions
 */
async function beginEnrolment(ctx: AuthContext, userId: string, begun: BegunFactor, session: SessionRecord | null): Promise<void> {
  const now = ctx.now()
  await ctx.store.userTokens.consumeAllForUser(userId, now, 'MFA_ENROLMENT')
  await ctx.store.userTokens.insert({
    userId,
    tokenHash: enrolmentHash(userId, begun.secret),
    purpose: 'MFA_ENROLMENT',
    payload: writePayload(session?.id ?? null, begun),
    expiresAt: new Date(now.getTime() + lifeSeconds * 1000),
    usedAt: null,
    createdAt: now,
  })
}

/** Returns the replacement that the account began within the last 15 minutes. */
export async function findReplacement(ctx: AuthContext, userId: string): Promise<Replacement | null> {
  const begun = await findBegun(ctx, userId)
  return begun?.recoveryCodes ? { ...begun, recoveryCodes: begun.recoveryCodes } : null
}

/**
 * Returns whether an undo link can remove a first factor (`Irreversibility`). Returns false if the enrolment began more than 15 minutes ago, or if
 * another enrolment began later. The stored secret identifies the enrolment.
 */
export async function irreversibilityOfFirst(ctx: AuthContext, userId: string, secret: string): Promise<Irreversibility> {
  const begun = await findBegun(ctx, userId)
  return begun?.secret === secret && begun.isFinal
}

/**
 * Returns the factor that the open enrolment stored. Returns null if no enrolment is open. Also returns null if the row has only the
 * session's id: the enrolment is for a first factor, and no passkey confirmed it.
 */
async function findBegun(ctx: AuthContext, userId: string): Promise<BegunFactor | null> {
  const [begun] = await ctx.store.userTokens.listOpen(userId, 'MFA_ENROLMENT', ctx.now())
  return begun ? readPayload(begun.payload).factor : null
}

/**
 * Finishes an enrolment. Returns true if this session began the enrolment of this secret within the last 15 minutes. A second call returns
 * false. Call the function inside the transaction that activates the factor.
 */
export async function finishEnrolment(ctx: AuthContext, userId: string, secret: string, session: SessionRecord | null): Promise<boolean> {
  const begun = await ctx.store.userTokens.find(enrolmentHash(userId, secret))
  if (begun?.userId !== userId) return false
  const { sessionId } = readPayload(begun.payload)
  if (sessionId !== null && sessionId !== session?.id) return false
  return (await ctx.store.userTokens.consume(begun.tokenHash, 'MFA_ENROLMENT', ctx.now())) !== null
}

function enrolmentHash(userId: string, secret: string): string {
  return createHash('sha256')
    .update(JSON.stringify(['mfa-enrolment', userId, secret]))
    .digest('hex')
}

/**
 * Returns the payload of an enrolment's row. If only the session's id must be stored, the payload is the id alone. The hashes of the
 * recovery codes are base64url, because 50 of them must fit in the column (`payloadLength` in router/findings/readiness/check-tables.ts).
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

/**
 * Returns a QR code as an SVG document. The SVG has one stroke for each run of dark squares. A stroke for each square would make the SVG
 * too large for a page.
 */
function qrCode(text: string): string {
  const { data, size } = encode(text, { ecc: 'M' })
  const runs = data.flatMap((row, y) => runsOf(row).map(([x, length]) => `M${x} ${y}.5h${length}`))
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size} ${size}" shape-rendering="crispEdges"><rect fill="white" width="${size}" height="${size}"/><path stroke="black" d="${runs.join('')}"/></svg>`
}

/** Returns the runs of adjacent dark squares. */
function runsOf(row: readonly boolean[]): [start: number, length: number][] {
  const runs: [number, number][] = []
  row.forEach((isDark, x) => {
    const last = runs.at(-1)
    if (isDark && last && last[0] + last[1] === x) last[1] += 1
    else if (isDark) runs.push([x, 1])
  })
  return runs
}
