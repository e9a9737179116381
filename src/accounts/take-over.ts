import { type AuthContext, storedPasskeys } from '../context'
import { hasPasswords } from '../core/config/every-setting'
import type { PhraseBook } from '../core/texts/phrase-book'
import type { Locale } from '../http/locale'
import { writeMail } from '../mail/mail-queue'
import { hasPassword, newPasswordChanges, unusablePassword } from '../passwords/verify-password'
import { endOtherSessions } from '../sessions/log-out'
import type { Login } from '../sessions/login'
import { isCreatedWith } from '../sessions/reauthentication/methods'
import type { IdentityRecord, UserChanges, UserRecord } from '../store/auth-store'
import { transactionOf } from '../store/knex/knex-store'
import { endOneShots } from './email-links/issue-email-login'
import { writableFields } from './update-profile'

export interface TakenOver {
  readonly removed: readonly RemovedThing[]
  /** The provider of the identity that created the account, if it did not verify this address. */
  readonly kept: string | null
  /** Of the user's row. The caller writes them. */
  readonly changes: UserChanges
}

/** For the login that took the account over. */
export function loginAfter({ settings }: Pick<AuthContext, 'settings'>, takenOver: TakenOver | null): Pick<Login, 'passwordRequired'> {
  return takenOver && hasPasswords(settings) ? { passwordRequired: true } : {}
}

/** For a new password after a take-over removed the old one. */
export const newPasswordSeconds = 900

/** Texts of an earlier sign-up. A placeholder replaces a name that may not be null; alone, the fields stay for that reason. */
export type Clearing = 'nothing' | 'name and fields' | 'placeholder and fields' | 'placeholder'

/**
 * `verifyAddress` decides whether this is necessary, because an attacker may have registered the account. Removes all ways to log in and
 * every session, factor, link and code, but not undo links. An identity stays if its provider verified this address, or if a social login
 * created the account with it. Call it inside a transaction that has locked the user's row.
 * @param options.hasPendingPasskey the caller does not add the passkey of the sign-up
 */
export async function takeOver(
  ctx: AuthContext,
  user: UserRecord,
  clearing: Clearing,
  { hasPendingPasskey = false } = {},
): Promise<TakenOver> {
  const { sessions, recoveryCodes } = ctx.store
  const hadSessions = ((await sessions?.listForUser(user.id, ctx.now())) ?? []).length > 0
  await endOtherSessions(ctx, user.id)
  await endOneShots(ctx, user)
  await recoveryCodes?.deleteForUser(user.id)
  const { providers, kept } = await removeIdentities(ctx, user)
  const passkeys = await removePasskeys(ctx, user.id)
  return {
    removed: [
      ...(hasPasswords(ctx.settings) && hasPassword(user) ? [{ kind: 'password' } as const] : []),
      ...(user.totpEnabledAt ? [{ kind: 'second_factor' } as const] : []),
      ...providers.map((provider) => ({ kind: 'identity', provider }) as const),
      ...(passkeys.length > 0 || hasPendingPasskey ? [{ kind: 'passkeys', ids: passkeys } as const] : []),
      ...(hadSessions ? [{ kind: 'sessions' } as const] : []),
      ...(clearing === 'nothing' ? [] : [{ kind: 'profile' } as const]),
    ],
    kept,
    changes: {
      ...newPasswordChanges(ctx, unusablePassword(), null),
      totpSecret: null,
      totpEnabledAt: null,
      totpLastStep: null,
      ...clearedProfile(ctx, clearing),
    },
  }
}

/** Inside the transaction, so that the host can revoke what it granted. */
export async function tellHostOfTakeOver(ctx: AuthContext, user: UserRecord): Promise<void> {
  await ctx.onTakeOver?.(user, ctx.store, { trx: transactionOf(ctx.store) })
}

/** Call it in the transaction. */
export function emitTakeOver({ events }: AuthContext, { id: userId }: UserRecord, { removed }: Pick<TakenOver, 'removed'>): void {
  events.emit('account.taken_over', { userId })
  for (const thing of removed) {
    if (thing.kind === 'identity') events.emit('identity.unlinked', { userId, provider: thing.provider })
    if (thing.kind === 'passkeys') for (const passkeyId of thing.ids) events.emit('passkey.removed', { userId, passkeyId })
    if (thing.kind === 'second_factor') events.emit('mfa.disabled', { userId })
  }
}

/** Call it after the commit. @param about `provider`: the registration key of the identity that this request linked */
export function announceTakeOver(
  ctx: AuthContext,
  user: UserRecord,
  { removed, kept }: Pick<TakenOver, 'removed' | 'kept'>,
  about: { locale?: Locale | undefined; provider?: string },
): void {
  if (isToldOwner({ removed, kept })) mailOwner(ctx, user, { removed, kept }, about)
}

/** Something was removed, or an identity stays that may be another person's. */
export function isToldOwner({ removed, kept }: Pick<TakenOver, 'removed' | 'kept'>): boolean {
  return removed.length > 0 || kept !== null
}

/** Outside the limits: each take-over needs a proof of the owner. Without the name, because an attacker may have chosen it. */
function mailOwner(
  ctx: AuthContext,
  { id, email }: UserRecord,
  { removed, kept }: Pick<TakenOver, 'removed' | 'kept'>,
  { locale = ctx.settings.defaultLocale, provider }: { locale?: Locale | undefined; provider?: string },
): void {
  const stays = kept === null ? [] : [ctx.texts.say(locale, 'mail.kept_identity', { provider: kept })]
  const items = [...removed.map((thing) => nameOfThing(ctx, thing, locale)), ...stays]
  const mail = {
    topic: 'account_taken_over',
    to: email,
    name: null,
    saysName: false,
    locale,
    items,
    ...(provider !== undefined && { provider }),
  } as const
  ctx.mailQueue?.post(writeMail(ctx, mail), id)
}

/** The kept one counts as linked now: for a day it confirms no change, so that the person can unlink it first. */
async function removeIdentities(ctx: AuthContext, user: UserRecord): Promise<{ providers: string[]; kept: string | null }> {
  const { identities } = ctx.store
  const linked = (await identities?.listForUser(user.id)) ?? []
  const first = linked.find(({ createdAt }) => isCreatedWith(ctx, user, createdAt)) // the oldest: a second one was linked later
  const foreign = linked.filter((identity) => !standsFor(identity, user.email))
  // A user has at most one identity at each provider.
  for (const { provider } of foreign) await identities?.deleteForUser(user.id, provider)
  if (first === undefined || !foreign.includes(first)) return { providers: foreign.map(({ provider }) => provider), kept: null }
  const { id: _, ...link } = first
  await identities?.insert({ ...link, createdAt: ctx.now() })
  return { providers: foreign.filter((identity) => identity !== first).map(({ provider }) => provider), kept: first.provider }
}

/** Null means that the provider did not say whether the address is verified. */
function standsFor({ email, emailVerified }: IdentityRecord, address: string): boolean {
  return email === address && emailVerified === true
}

function clearedProfile(ctx: AuthContext, clearing: Clearing): UserChanges {
  if (clearing === 'nothing') return {}
  return { name: clearing === 'name and fields' ? null : placeholderName(ctx), ...(clearing !== 'placeholder' && emptyFields(ctx)) }
}

export function placeholderName(ctx: AuthContext): string {
  return ctx.texts.say(ctx.settings.defaultLocale, 'account.placeholder_name')
}

export function emptyFields(ctx: AuthContext): Pick<UserChanges, 'fields'> {
  const names = writableFields(ctx)
  return names.length > 0 ? { fields: Object.fromEntries(names.map((name) => [name, null])) } : {}
}

/** `profile` is the name and the fields of an earlier sign-up. */
type RemovedThing =
  | { readonly kind: 'password' | 'second_factor' | 'sessions' | 'profile' }
  | { readonly kind: 'identity'; readonly provider: string }
  | { readonly kind: 'passkeys'; readonly ids: readonly string[] }

function nameOfThing({ texts }: { readonly texts: PhraseBook }, thing: RemovedThing, locale: Locale): string {
  return texts.say(locale, `mail.removed.${thing.kind}`, thing.kind === 'identity' ? { provider: thing.provider } : {})
}

/** Call it inside a transaction. Works even while passkeys are off. Returns the ids. */
export async function removePasskeys(ctx: AuthContext, userId: string): Promise<string[]> {
  const passkeys = await storedPasskeys(ctx)
  const ids = ((await passkeys?.listForUser(userId)) ?? []).map(({ id }) => id)
  if (ids.length > 0) await passkeys?.deleteForUser(userId)
  return ids
}
