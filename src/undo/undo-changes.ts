import { type AuthContext, unitOfWork } from '../context'
import { InvalidTokenError } from '../errors'
import type { Locale } from '../http/locale'
import { findLink, issueLink, type LinkToken, spendLink } from '../mailbox/email-link'
import { refusesEmailLink } from '../mailbox/refuses-email-link'
import { mailLink, mailNotice } from '../mailbox/send-mail'
import { unusablePassword } from '../passwords/unusable-password'
import { endOtherSessions } from '../session/log-out'
import { DuplicateRecordError, type UserRecord, type UserTokenRecord } from '../store/auth-store'
import { planUndo, type UndoPlan } from './plan-undo'
import { openPoints, type StoredUndoPoint } from './undo-point'
import { whatIsLeft } from './what-is-left'

export interface UndoInput {
  /** The plaintext of the link in a notice. */
  token: string
  /** Of the mails. Default: `defaultLocale`. */
  locale?: Locale | undefined
}

export interface UndoResult {
  userId: string
  /** False: another account has the address by now. This account is deactivated, and an administrator has to decide. */
  addressRestored: boolean
  /** False: no way to sign in is left, so the account was deactivated. */
  isOpen: boolean
  /** What can be used to sign in now, in the language of the request. */
  left: readonly string[]
}

interface Undone {
  readonly before: UserRecord
  readonly after: UserRecord
  readonly plan: UndoPlan
  readonly addressRestored: boolean
  readonly isOpen: boolean
  readonly reset: LinkToken | null
}

/**
 * Takes an account back by the link of a notice (contract 24.6): its address and second factor are what they were, what was added since
 * is removed, and every session, link and password ends. Points of earlier changes stay, so that a thief's own link takes back only
 * what came after it.
 * @throws InvalidTokenError
 */
export async function undoChanges(ctx: AuthContext, { token, locale = ctx.settings.defaultLocale }: UndoInput): Promise<UndoResult> {
  const { link, user, point } = await findUndo(ctx, token)
  const mayReset = ctx.settings.localAccountsEnabled && !(await refusesEmailLink(ctx, { ...user, email: point.email }))
  const undone = await undoOrAgain(ctx, link, mayReset)
  announce(ctx, undone, locale)
  const { addressRestored, isOpen, plan } = undone
  return { userId: user.id, addressRestored, isOpen, left: isOpen ? whatIsLeft(plan, mayReset, locale) : [] }
}

/** What the page of the link shows before anything happens. Spends nothing. @throws InvalidTokenError */
export async function previewUndo(ctx: AuthContext, token: string, locale: Locale): Promise<readonly string[]> {
  const { user, point, open } = await findUndo(ctx, token)
  const plan = planUndo({ user, identities: await identitiesOf(ctx, user.id) }, point, open)
  const mayReset = ctx.settings.localAccountsEnabled && !(await refusesEmailLink(ctx, { ...user, email: point.email }))
  return whatIsLeft(plan, mayReset, locale)
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

async function identitiesOf(ctx: AuthContext, userId: string) {
  return (await ctx.store.identities?.listForUser(userId)) ?? []
}

/** The address may be taken between our look and our write; then the second try sees that. */
async function undoOrAgain(ctx: AuthContext, link: UserTokenRecord, mayReset: boolean): Promise<Undone> {
  const undo = () => unitOfWork(ctx, (ctx) => undoInUnit(ctx, link, mayReset))
  try {
    return await undo()
  } catch (error) {
    if (!(error instanceof DuplicateRecordError)) throw error
    return undo()
  }
}

async function undoInUnit(ctx: AuthContext, link: UserTokenRecord, mayReset: boolean): Promise<Undone> {
  const before = await ctx.store.users.lock(link.userId)
  if (!before) throw new InvalidTokenError()
  const open = await openPoints(ctx, before.id)
  const place = open.findIndex(({ tokenHash }) => tokenHash === link.tokenHash)
  const point = open[place]
  if (!point) throw new InvalidTokenError()
  await spendLink(ctx, link, 'UNDO')
  for (const { tokenHash } of open.slice(place + 1)) await ctx.store.userTokens.consume(tokenHash, 'UNDO', ctx.now())

  const plan = planUndo({ user: before, identities: await identitiesOf(ctx, before.id) }, point, open)
  const holder = await ctx.store.users.findByEmail(plan.email)
  const addressRestored = holder === null || holder.id === before.id
  const isOpen = addressRestored && before.isActive && (mayReset || plan.keptIdentities.length > 0)
  const after = await takeBack(ctx, before, plan, { addressRestored, isOpen })
  const reset = isOpen && mayReset ? await issueLink(ctx, before.id, 'PASSWORD_RESET') : null
  return { before, after, plan, addressRestored, isOpen, reset }
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
    emailVerifiedAt: addressRestored ? now : null, // the link came to that address
    hashedPassword: unusablePassword(),
    passwordSetAt: null,
    isActive: isOpen,
    activatedAt: before.activatedAt ?? now, // a closed account must not count as one that waits for its activation
    updatedAt: now,
  }
  await ctx.store.users.update(before.id, changes)
  if (!plan.keepsRecoveryCodes) await ctx.store.recoveryCodes?.deleteForUser(before.id)
  for (const provider of plan.removedProviders) await ctx.store.identities?.deleteForUser(before.id, provider)
  await ctx.store.userTokens.consumeAllForUser(before.id, now)
  await endOtherSessions(ctx, before.id)
  return { ...before, ...changes }
}

function announce(ctx: AuthContext, { before, after, plan, addressRestored, isOpen, reset }: Undone, locale: Locale): void {
  const { id: userId } = before
  ctx.events.emit('undo.used', { userId, addressRestored })
  if (before.isActive && !isOpen) ctx.events.emit('undo.conflict', { userId })
  for (const provider of plan.removedProviders) ctx.events.emit('identity.unlinked', { userId, provider })
  if (before.totpEnabledAt !== null && after.totpEnabledAt === null) ctx.events.emit('mfa.disabled', { userId })
  if (before.email !== after.email) ctx.events.emit('email.changed', { userId })
  if (!addressRestored) return // nobody who reads either address is known to own the account
  const left = whatIsLeft(plan, reset !== null, locale)
  if (reset) mailLink(ctx, after, 'account_restored', reset, locale, { items: left })
  else if (isOpen) mailNotice(ctx, after, 'account_restored', locale, { items: left })
  const isElsewhere = before.email !== after.email && before.email !== nowhere(userId)
  if (isElsewhere) mailNotice(ctx, before, 'address_taken_back', locale)
}

/** The address of an account whose own one is taken. No mail reaches it (RFC 6761 section 6.4). */
function nowhere(userId: string): string {
  return `${userId}@undone.invalid`
}
