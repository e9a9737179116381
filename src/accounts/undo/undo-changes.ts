import { randomUUID } from 'node:crypto'
import { type AuthContext, storedPasskeys, transaction } from '../../context'
import { hasPasswords } from '../../core/config/every-setting'
import { InvalidTokenError } from '../../core/errors'
import type { PhraseBook } from '../../core/texts/phrase-book'
import type { Locale } from '../../http/locale'
import { newPasswordChanges, unusablePassword } from '../../passwords/verify-password'
import { isLeaving } from '../../sessions/account-state'
import { endOtherSessions } from '../../sessions/log-out'
import { passkeyDigest } from '../../sessions/reauthentication/irreversible-change'
import { hasMatureFactor } from '../../sessions/reauthentication/methods'
import {
  DuplicateRecordError,
  type IdentityRecord,
  type PasskeyRecord,
  type UserRecord,
  type UserTokenRecord,
} from '../../store/auth-store'
import { consumeLink, findLink, issueLink, type LinkToken, refusesEmailLink } from '../email-links/email-link'
import { emailLoginsOf, endOneShots, issueEmailLogin } from '../email-links/issue-email-login'
import { mailLink, mailNotice } from '../email-links/send-mail'
import {
  type FactorState,
  factorOf,
  noFactor,
  openPoints,
  type SameFactor,
  type StoredUndoPoint,
  sameFactorOf,
  type UndoableChange,
} from './announce-change'

export interface UndoInput {
  /** The token of the link in a notice, in plain text. */
  token: string
  /** Language of the mails. Default: `defaultLocale`. */
  locale?: Locale | undefined
}

export interface UndoResult {
  userId: string
  /** False if another account has the address by now. This account is then deactivated, and an administrator must decide. */
  addressRestored: boolean
  /** False if no way to log in is left. The account is then deactivated. */
  isOpen: boolean
  /** The ways to log in after the undo, in the language of the request. */
  left: readonly string[]
}

interface Undone {
  readonly before: UserRecord
  readonly after: UserRecord
  readonly plan: UndoPlan
  readonly addressRestored: boolean
  readonly isOpen: boolean
  readonly byMail: MailedWay
  /** To choose a password or to log in. Null if the mail has no link. */
  readonly way: Pick<LinkToken, 'url' | 'expiresAt'> | null
}

/**
 * Restores the address and the second factor, and removes what was added later (`planUndo`). Invalidates the password, sessions and links,
 * except earlier undo links: if an attacker uses one, the owner can still use an earlier one.
 * @throws InvalidTokenError
 */
export async function undoChanges(ctx: AuthContext, { token, locale = ctx.settings.defaultLocale }: UndoInput): Promise<UndoResult> {
  const { link, user, point } = await findUndo(ctx, token)
  const undone = await undoOrAgain(ctx, link, await mailedWay(ctx, { ...user, email: point.email }))
  announce(ctx, undone, locale)
  const { addressRestored, isOpen, plan } = undone
  return { userId: user.id, addressRestored, isOpen, left: isOpen ? whatIsLeft(ctx, plan, undone.byMail, locale) : [] }
}

/** What the link's page shows before the person decides. Does not use the link. @throws InvalidTokenError */
export async function previewUndo(ctx: AuthContext, token: string, locale: Locale): Promise<readonly string[]> {
  const { user, point, open } = await findUndo(ctx, token)
  const plan = await planFor(ctx, user, point, open)
  return whatIsLeft(ctx, plan, await mailedWay(ctx, { ...user, email: point.email }), locale)
}

/** A new password if passwords are on, else a login by email. Null if both are off, or if the host rejects mailed links. */
async function mailedWay(ctx: AuthContext, user: UserRecord): Promise<MailedWay> {
  const hasWay = hasPasswords(ctx.settings) || ctx.settings.emailLogin !== 'off'
  if (!hasWay || (await refusesEmailLink(ctx, user))) return null
  return hasPasswords(ctx.settings) ? 'password' : 'email_login'
}

async function findUndo(
  ctx: AuthContext,
  token: string,
): Promise<{ link: UserTokenRecord; user: UserRecord; point: StoredUndoPoint; open: readonly StoredUndoPoint[] }> {
  const link = await findLink(ctx, token, 'UNDO')
  const user = await ctx.store.users.find(link.userId)
  const open = await openPoints(ctx, link.userId)
  const point = open.find(({ tokenHash }) => tokenHash === link.tokenHash)
  if (!user || !point || point.isFinal) throw new InvalidTokenError()
  return { link, user, point, open }
}

async function planFor(ctx: AuthContext, user: UserRecord, point: StoredUndoPoint, open: readonly StoredUndoPoint[]): Promise<UndoPlan> {
  const identities = (await ctx.store.identities?.listForUser(user.id)) ?? []
  const passkeys = (await (await storedPasskeys(ctx))?.listForUser(user.id)) ?? []
  const plan = planUndo({ user, identities, passkeys }, point, open, sameFactorOf(ctx, user.id))
  return ctx.settings.passkeysEnabled ? plan : { ...plan, keptPasskeys: [] } // while passkeys are off, nobody can log in with them
}

async function undoOrAgain(ctx: AuthContext, link: UserTokenRecord, byMail: MailedWay): Promise<Undone> {
  const undo = () => transaction(ctx, (ctx) => undoInUnit(ctx, link, byMail))
  try {
    return await undo()
  } catch (error) {
    if (!(error instanceof DuplicateRecordError)) throw error
    return undo()
  }
}

async function undoInUnit(ctx: AuthContext, link: UserTokenRecord, byMail: MailedWay): Promise<Undone> {
  const before = await ctx.store.users.lock(link.userId)
  if (!before) throw new InvalidTokenError()
  const open = await openPoints(ctx, before.id)
  const place = open.findIndex(({ tokenHash }) => tokenHash === link.tokenHash)
  const point = open[place]
  if (!point) throw new InvalidTokenError()
  await consumeLink(ctx, link, 'UNDO')
  for (const { tokenHash } of open.slice(place + 1)) await ctx.store.userTokens.consume(tokenHash, 'UNDO', ctx.now())

  const plan = await planFor(ctx, before, point, open)
  const holder = await ctx.store.users.findByEmail(plan.email)
  const addressRestored = holder === null || holder.id === before.id
  const isOpen = addressRestored && countsAsActive(before) && (byMail !== null || plan.keptIdentities.length + plan.keptPasskeys.length > 0)
  const after = await takeBack(ctx, before, plan, { addressRestored, isOpen })
  const way = isOpen ? await issueWay(ctx, after, byMail) : null
  emitUndo(ctx, { before, after, plan, addressRestored, isOpen })
  return { before, after, plan, addressRestored, isOpen, byMail, way }
}

/** An attacker who asked for the deletion must not have ended the undo by it. */
function countsAsActive(user: UserRecord): boolean {
  return user.isActive || isLeaving(user)
}

function emitUndo(
  { events }: AuthContext,
  { before, after, plan, addressRestored, isOpen }: Pick<Undone, 'before' | 'after' | 'plan' | 'addressRestored' | 'isOpen'>,
): void {
  const { id: userId } = before
  events.emit('undo.used', { userId, addressRestored })
  if (isLeaving(before)) events.emit('account.deletion_cancelled', { userId })
  if (countsAsActive(before) && !isOpen) events.emit('undo.conflict', { userId })
  for (const provider of plan.removedProviders) events.emit('identity.unlinked', { userId, provider })
  for (const { id: passkeyId } of plan.removedPasskeys) events.emit('passkey.removed', { userId, passkeyId })
  if (before.totpEnabledAt !== null && after.totpEnabledAt === null) events.emit('mfa.disabled', { userId })
  if (before.email !== after.email) events.emit('email.changed', { userId })
}

/** Null if the app mails only codes: a code works only in the browser that requested it. */
async function issueWay(ctx: AuthContext, { id, email }: UserRecord, byMail: MailedWay): Promise<Undone['way']> {
  if (byMail === 'password') return issueLink(ctx, id, 'PASSWORD_RESET')
  const emailLogins = emailLoginsOf(ctx)
  if (byMail === null || !emailLogins || ctx.settings.emailLogin === 'code') return null
  // With `isKnownDevice: true`, login requests of unknown clients cannot invalidate this link.
  const login = { id: randomUUID(), email, returnTo: null, sessionId: null, isKnownDevice: true, carries: 'link' } as const
  const { url, expiresAt } = await issueEmailLogin(ctx, emailLogins, login)
  return url === null ? null : { url, expiresAt }
}

async function takeBack(
  ctx: AuthContext,
  before: UserRecord,
  plan: UndoPlan,
  { addressRestored, isOpen }: { addressRestored: boolean; isOpen: boolean },
): Promise<UserRecord> {
  const now = ctx.now()
  const changes = {
    ...plan.factor,
    email: addressRestored ? plan.email : nowhere(before.id),
    emailVerifiedAt: addressRestored ? now : null, // the link was mailed to that address
    ...newPasswordChanges(ctx, unusablePassword(), null),
    isActive: isOpen,
    activatedAt: before.activatedAt ?? now, // a deactivated account must not count as pending
    ...(isLeaving(before) && { deletionRequestedAt: null }),
    updatedAt: now,
  }
  await ctx.store.users.update(before.id, changes)
  if (!plan.keepsRecoveryCodes) await ctx.store.recoveryCodes?.deleteForUser(before.id)
  for (const provider of plan.removedProviders) await ctx.store.identities?.deleteForUser(before.id, provider)
  for (const { id } of plan.removedPasskeys) await ctx.store.passkeys?.deleteForUser(before.id, id)
  await endOneShots(ctx, before)
  if (plan.email !== before.email) await emailLoginsOf(ctx)?.consumeAllForEmail(plan.email, now)
  await endOtherSessions(ctx, before.id)
  return { ...before, ...changes }
}

function announce(ctx: AuthContext, { before, after, plan, addressRestored, isOpen, byMail, way }: Undone, locale: Locale): void {
  const { id: userId } = before
  if (!addressRestored) return // we cannot know whether the owner reads one of these addresses
  const left = whatIsLeft(ctx, plan, byMail, locale)
  if (way) mailLink(ctx, after, 'account_restored', way, locale, { items: left })
  else if (isOpen) mailNotice(ctx, after, 'account_restored', locale, { items: left })
  const isElsewhere = before.email !== after.email && before.email !== nowhere(userId)
  if (isElsewhere) mailNotice(ctx, before, 'address_taken_back', locale)
}

/** For an account that lost its address to another account. It cannot receive mail (RFC 6761 section 6.4). */
function nowhere(userId: string): string {
  return `${userId}@undone.invalid`
}

/** A day, whatever the setting says: an attacker's factor of an hour ago must not stay. */
const dayOld = { youngCredentialSeconds: 86_400 }

interface UndoPlan {
  readonly email: string
  readonly factor: FactorState
  readonly keepsRecoveryCodes: boolean
  /** Of the mail whose link still removes the factor. Null: no such link is left, or the account has no factor. */
  readonly factorMailedAt: Date | null
  readonly removedProviders: readonly string[]
  readonly keptIdentities: readonly IdentityRecord[]
  readonly removedPasskeys: readonly PasskeyRecord[]
  readonly keptPasskeys: readonly PasskeyRecord[]
}

/**
 * Restores the address of the point. Removes what was added since the oldest point that is not final; final changes stay. Restores that
 * point's factor. But if the factor of a point up to `point` was then older than 24 hours, the first such point decides: otherwise an undo
 * would remove the factor that its owner enrolled some days before the attack.
 * @param open the account's open points, oldest first; `point` is one of them
 */
function planUndo(
  { user, identities, passkeys }: AccountAsItIs,
  point: StoredUndoPoint,
  open: readonly StoredUndoPoint[],
  isSame: SameFactor,
): UndoPlan {
  const oldest = open.find(({ isFinal }) => !isFinal) ?? point
  const since = open.slice(open.indexOf(oldest))
  const upToPoint = open.slice(0, open.indexOf(point) + 1)
  const deciding = upToPoint.find(({ createdAt, factor }) => hasMatureFactor({ now: () => createdAt, settings: dayOld }, factor))
  const isOld = (digest: string) => {
    const passkey = passkeys.find((one) => passkeyDigest(one) === digest)
    return !passkey || passkey.createdAt < oldest.createdAt
  }
  const { factor, final, openSince } = followIrreversible(user, since, { isOld, deciding, isSame })
  const isUnchanged = isSame(factor, factorOf(user))
  const isEnrolment = ({ change, isFinal }: StoredUndoPoint, place: number) =>
    enrolments.has(change) && isFinal === false && isSame(factor, open[place + 1]?.factor ?? factorOf(user))
  const isKept = ({ provider, createdAt }: IdentityRecord) => {
    // The date decides only without an undo point of the linking, because the host's column may store only whole seconds.
    const linking = since.findLast((one) => one.change === 'identity_linked' && one.provider === provider)
    return linking ? final.has(linking) : createdAt < oldest.createdAt
  }
  const kept = identities.filter(isKept)
  const keptPasskeys = passkeys.filter((passkey) => {
    const adding = addingOf(since, passkeyDigest(passkey))
    return adding ? final.has(adding) : passkey.createdAt < oldest.createdAt
  })
  return {
    email: point.email,
    factor: isUnchanged ? factorOf(user) : factor, // keeps the newest `totpLastStep`, so that used codes stay used
    keepsRecoveryCodes: isUnchanged && openSince.every(({ change }) => change !== 'recovery_codes_regenerated'),
    factorMailedAt: factor.totpEnabledAt && (upToPoint.slice(0, -1).findLast(isEnrolment)?.createdAt ?? null),
    removedProviders: identities.filter((identity) => !kept.includes(identity)).map(({ provider }) => provider),
    keptIdentities: kept,
    removedPasskeys: passkeys.filter((passkey) => !keptPasskeys.includes(passkey)),
    keptPasskeys,
  }
}

interface AccountAsItIs {
  readonly user: UserRecord
  readonly identities: readonly IdentityRecord[]
  readonly passkeys: readonly PasskeyRecord[]
}

function addingOf(since: readonly StoredUndoPoint[], digest: string): StoredUndoPoint | undefined {
  return since.findLast(({ change, passkey }) => change === 'passkey_added' && passkey === digest)
}

interface Followed {
  /** Of the point that decides, with the final changes since then. */
  readonly factor: FactorState
  /** The changes of these points stay. */
  readonly final: ReadonlySet<StoredUndoPoint>
  /** Newer than the last final change of the factor. The undo reverts their changes. */
  readonly openSince: readonly StoredUndoPoint[]
}

/** A final change stays only if its factor or passkey stays: an attacker could add one, wait a day, and make final changes. */
function followIrreversible(
  user: UserRecord,
  since: readonly StoredUndoPoint[],
  { isOld, deciding, isSame }: { isOld: (passkey: string) => boolean; deciding: StoredUndoPoint | undefined; isSame: SameFactor },
): Followed {
  let factor = since[0]?.factor ?? noFactor
  let openSince: StoredUndoPoint[] = []
  const final = new Set<StoredUndoPoint>()
  const isConfirmed = ({ isFinal, factor: own }: StoredUndoPoint) => {
    if (isFinal === true) return own.totpSecret !== null && isSame(own, factor)
    if (isFinal === false) return false
    const adding = addingOf(since, isFinal)
    return adding ? final.has(adding) : isOld(isFinal)
  }
  since.forEach((point, place) => {
    if (point === deciding) factor = point.factor
    if (!isConfirmed(point)) {
      openSince.push(point)
      return
    }
    final.add(point)
    if (!factorChanges.has(point.change)) return
    factor = point.change === 'mfa_disabled' ? noFactor : (since[place + 1]?.factor ?? factorOf(user))
    openSince = []
  })
  return { factor, final, openSince }
}

const enrolments: ReadonlySet<UndoableChange> = new Set(['mfa_enabled', 'mfa_replaced'])
const factorChanges: ReadonlySet<UndoableChange> = new Set([...enrolments, 'mfa_disabled'])

/** Null if the mail offers no way to log in. */
type MailedWay = 'password' | 'email_login' | null

/** With dates, and with what the person must know about the second factor. */
function whatIsLeft(
  { texts }: { readonly texts: PhraseBook },
  { keptIdentities, keptPasskeys, factor: { totpEnabledAt }, factorMailedAt, keepsRecoveryCodes }: UndoPlan,
  byMail: MailedWay,
  locale: Locale,
): readonly string[] {
  const since = (at: Date) => new Intl.DateTimeFormat(locale, { dateStyle: 'long', timeZone: 'UTC' }).format(at)
  return [
    ...(byMail === null ? [] : [texts.say(locale, `mail.left.${byMail}`)]),
    ...keptIdentities.map(({ provider, createdAt }) => texts.say(locale, 'mail.left.identity', { provider, date: since(createdAt) })),
    ...keptPasskeys.map(({ createdAt }) => texts.say(locale, 'mail.left.passkey', { date: since(createdAt) })),
    ...(totpEnabledAt ? [texts.say(locale, 'mail.left.factor', { date: since(totpEnabledAt) })] : []),
    ...(totpEnabledAt && !keepsRecoveryCodes ? [texts.say(locale, 'mail.left.no_recovery_codes')] : []),
    ...(totpEnabledAt && factorMailedAt
      ? [texts.say(locale, 'mail.left.factor_stays', { date: since(totpEnabledAt), mailed: since(factorMailedAt) })]
      : []),
  ]
}
