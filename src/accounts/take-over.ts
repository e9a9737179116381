import { type AuthContext, storedPasskeys } from '../context'
import { hasPasswords } from '../core/config/every-setting'
import type { PhraseBook } from '../core/texts/phrase-book'
import type { Locale } from '../http/locale'
import { writeMail } from '../mail/write-mail'
import { hasPassword, unusablePassword } from '../passwords/verify-password'
import { endOtherSessions } from '../sessions/log-out'
import { isCreatedWith } from '../sessions/reauthentication/methods'
import type { IdentityRecord, UserChanges, UserRecord } from '../store/auth-store'
import { transactionOf } from '../store/knex/knex-store'
import { endOneShots } from './email-links/issue-email-login'
import { writableFields } from './update-profile'

/** The result of a take-over. */
export interface TakenOver {
  readonly removed: readonly RemovedThing[]
  /** The provider of the identity with which the account was created, if its provider did not verify this address. Null: there is none. */
  readonly kept: string | null
  /** Changes of the user's row. The caller writes the changes. */
  readonly changes: UserChanges
}

/** How many seconds the person has to choose a new password after a take-over removed the old password. */
export const newPasswordSeconds = 900

/**
 * Which texts of an earlier sign-up the take-over clears. A placeholder replaces a name whose column does not allow null. With
 * `placeholder`, the fields stay, because one of their columns does not allow null either.
 */
export type Clearing = 'nothing' | 'name and fields' | 'placeholder and fields' | 'placeholder'

/**
 * Removes every way to log in to an account. `verifyAddress` decides whether this is necessary: at the first verification of an address
 * without evidence of the owner. An attacker may have registered such an account. Deletes the sessions, the second factor, the recovery
 * codes and the passkeys. Invalidates mailed links and codes, except undo links. Keeps an identity only if its provider verified this
 * address, or if a social login created the account with it. Replaces the password with an unusable hash. Call the function inside a
 * transaction that has locked the user's row.
 */
export async function takeOver(ctx: AuthContext, user: UserRecord, clearing: Clearing): Promise<TakenOver> {
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
      ...(passkeys.length > 0 ? [{ kind: 'passkeys', ids: passkeys } as const] : []),
      ...(hadSessions ? [{ kind: 'sessions' } as const] : []),
      ...(clearing === 'nothing' ? [] : [{ kind: 'profile' } as const]),
    ],
    kept,
    changes: {
      hashedPassword: unusablePassword(),
      passwordSetAt: null,
      totpSecret: null,
      totpEnabledAt: null,
      totpLastStep: null,
      ...clearedProfile(ctx, clearing),
    },
  }
}

/** Calls the host's `onTakeOver` inside the transaction, so that the host can revoke what the host granted. */
export async function tellHostOfTakeOver(ctx: AuthContext, user: UserRecord): Promise<void> {
  await ctx.onTakeOver?.(user, ctx.store, { trx: transactionOf(ctx.store) })
}

/**
 * Emits the events of a take-over and sends a mail to the owner. Call the function after the commit.
 * @param about `provider`: the registration key of the identity that this request linked
 */
export function announceTakeOver(
  ctx: AuthContext,
  user: UserRecord,
  { removed, kept }: Pick<TakenOver, 'removed' | 'kept'>,
  about: { locale?: Locale | undefined; provider?: string },
): void {
  const userId = user.id
  ctx.events.emit('account.taken_over', { userId })
  for (const thing of removed) {
    if (thing.kind === 'identity') ctx.events.emit('identity.unlinked', { userId, provider: thing.provider })
    if (thing.kind === 'passkeys') for (const passkeyId of thing.ids) ctx.events.emit('passkey.removed', { userId, passkeyId })
    if (thing.kind === 'second_factor') ctx.events.emit('mfa.disabled', { userId })
  }
  if (isToldOwner({ removed, kept })) mailOwner(ctx, user, { removed, kept }, about)
}

/** Returns true if the owner gets the mail of a take-over: something was removed, or an identity stays that may be another person's. */
export function isToldOwner({ removed, kept }: Pick<TakenOver, 'removed' | 'kept'>): boolean {
  return removed.length > 0 || kept !== null
}

/**
 * Sends the mail outside the rate limits. This is safe, because each take-over needs a link or a login of the owner, so an attacker cannot
 * cause many of these mails. The mail leaves out the name, because an attacker may have chosen the name.
 */
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

/** Removes the identities. The kept one counts as linked now: for a day it confirms no change, so that the person can unlink it first. */
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

/**
 * Returns true if the provider verified this address. If `emailVerified` is null, the provider did not say whether the address is verified.
 */
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

/** Returns the fields that a person may write, each set to null. */
export function emptyFields(ctx: AuthContext): Pick<UserChanges, 'fields'> {
  const names = writableFields(ctx)
  return names.length > 0 ? { fields: Object.fromEntries(names.map((name) => [name, null])) } : {}
}

/** A kind of data that a take-over removed. `profile` is the name and the fields of an earlier sign-up. */
type RemovedThing =
  | { readonly kind: 'password' | 'second_factor' | 'sessions' | 'profile' }
  | { readonly kind: 'identity'; readonly provider: string }
  | { readonly kind: 'passkeys'; readonly ids: readonly string[] }

/** Returns the text for the mail that lists the removed data. */
function nameOfThing({ texts }: { readonly texts: PhraseBook }, thing: RemovedThing, locale: Locale): string {
  return texts.say(locale, `mail.removed.${thing.kind}`, thing.kind === 'identity' ? { provider: thing.provider } : {})
}

/** Removes every passkey of a user inside the caller's transaction, even while passkeys are off. Returns the ids of the passkeys. */
export async function removePasskeys(ctx: AuthContext, userId: string): Promise<string[]> {
  const passkeys = await storedPasskeys(ctx)
  const ids = ((await passkeys?.listForUser(userId)) ?? []).map(({ id }) => id)
  if (ids.length > 0) await passkeys?.deleteForUser(userId)
  return ids
}
