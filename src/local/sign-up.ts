import { type AuthContext, unitOfWork } from '../context'
import { EmailTakenError, InternalError, ValidationError } from '../errors'
import { requireEmail } from '../http/email-address'
import type { Locale } from '../http/locale'
import { issueLink, type LinkToken } from '../mailbox/email-link'
import { isPending } from '../mailbox/is-pending'
import { ACTIVATION_WITHHELD } from '../mailbox/refuses-email-link'
import { mailLink, mailNotice, mayMail } from '../mailbox/send-mail'
import { checkPassword } from '../passwords/check-password'
import { announceLogin } from '../session/announce-login'
import { finishLogin, type LoginResult, type OpenSession, type TokenPair } from '../session/finish-login'
import { DuplicateRecordError, type NewUser, type UserRecord } from '../store/auth-store'
import { sendActivation } from './request-activation'

export interface SignUpInput {
  email: string
  password: string
  /** At most 120 characters. */
  name?: string | null | undefined
  /** Of the mail. Default: `defaultLocale`. */
  locale?: Locale | undefined
  /** What else the host's signup schema let through; handed to `onSignup`. */
  extra?: object | undefined
}

/** What became of a signup; a taken address is told to nobody by itself. */
export type Signup =
  | {
      kind: 'made'
      user: UserRecord
      /** Of an account that waits for its activation; null where the host has to be asked first. */
      link: LinkToken | null
      /** Of an account born active, when one was asked for. */
      session: LoginResult | null
    }
  /** `owner` as it was seen; null when somebody took the address at this moment. */
  | { kind: 'taken'; owner: UserRecord | null }

/**
 * A local account: active at once with `autoActivate`, else waiting for its link. The account, its link and what the
 * host's `onSignup` writes are one unit: either all of it is there, or nothing is. The mail is `sendFirstLink`'s.
 * @param open begins the session of an account that is born active; null: none is wanted
 * @throws ValidationError (address, name, password), ServiceUnavailableError, and what `onSignup` throws
 */
export async function signUp(ctx: AuthContext, input: SignUpInput, open: OpenSession<TokenPair> | null): Promise<Signup> {
  const email = requireEmail(input.email)
  const name = requireName(input.name)
  await checkPassword(ctx, input.password, { email, name })
  // A taken address costs the same hash: the time of the answer says little about it.
  const hashedPassword = await ctx.hasher.hash(input.password)
  const owner = await ctx.store.users.findByEmail(email)
  if (owner) return { kind: 'taken', owner }
  const body = { ...withoutPassword(input), email, name }
  const account = await insertAccount(ctx, newAccount(ctx, { email, name, hashedPassword }), body, open)
  if (account.kind === 'taken') return account
  ctx.events.emit('signup', { userId: account.user.id, by: 'pwd' })
  if (account.session) announceLogin(ctx, account.session)
  return account
}

/** Mails a new account its activation link. Null: it is active. */
export async function sendFirstLink(
  ctx: AuthContext,
  { user, link }: Pick<Signup & { kind: 'made' }, 'user' | 'link'>,
  locale: Locale,
): Promise<LinkToken | typeof ACTIVATION_WITHHELD | null> {
  if (user.isActive) return null
  if (!link) return (await sendActivation(ctx, user, locale)) ?? ACTIVATION_WITHHELD
  if (await mayMail(ctx, user)) mailLink(ctx, user, 'activation', link, locale)
  return link
}

/** For a signup whose answer does not say that the address is taken: its owner is told instead. */
export async function tellOwner(ctx: AuthContext, seen: UserRecord | null, address: string, locale: Locale): Promise<void> {
  const owner = seen ?? (await ctx.store.users.findByEmail(requireEmail(address)))
  if (owner) mailNotice(ctx, owner, 'address_taken', locale)
}

/** A duplicate of our own row is the address; one that `onSignup` meets is the host's affair, and thrown as it is. */
async function insertAccount(ctx: AuthContext, account: NewUser, body: object, open: OpenSession<TokenPair> | null): Promise<Signup> {
  const taken = new EmailTakenError()
  const insert = async (ctx: AuthContext) => {
    try {
      return await ctx.store.users.insert(account)
    } catch (error) {
      throw error instanceof DuplicateRecordError ? taken : error
    }
  }
  try {
    return await unitOfWork(ctx, async (ctx) => complete(ctx, await insert(ctx), body, open))
  } catch (error) {
    if (error === taken) return { kind: 'taken', owner: null }
    throw error
  }
}

async function complete(ctx: AuthContext, inserted: UserRecord, body: object, open: OpenSession<TokenPair> | null): Promise<Signup> {
  await ctx.signup.onSignup?.(inserted, body, ctx.store)
  // The hook may have changed the account, and then it decides: no session begins on one that it made inactive.
  const user = ctx.signup.onSignup ? await ctx.store.users.lock(inserted.id) : inserted
  if (!user) throw new InternalError({ cause: new Error('onSignup removed the account.') })
  if (user.isActive)
    return { kind: 'made', user, link: null, session: open && (await finishLogin(ctx, user, { amr: ['pwd'], provider: null }, open)) }
  // A host that may refuse links is asked first, outside of the unit; an account the hook has closed waits for no link.
  const link = ctx.refusesEmailLink || !(await isPending(ctx, user)) ? null : await issueLink(ctx, user.id, 'ACTIVATION')
  return { kind: 'made', user, link, session: null }
}

function requireName(name: string | null | undefined): string | null {
  if (name === undefined || name === null || name === '') return null
  if (name.length <= 120) return name
  throw new ValidationError({ details: { errors: [{ path: 'name', rule: 'string.max' }] } })
}

/** A form may send the password twice: what equals it goes no further, whatever the host calls it. */
function withoutPassword({ extra = {}, password }: SignUpInput): object {
  return Object.fromEntries(Object.entries(extra).filter(([, value]) => value !== password))
}

function newAccount(ctx: AuthContext, { email, name, hashedPassword }: Pick<NewUser, 'email' | 'name' | 'hashedPassword'>): NewUser {
  const now = ctx.now()
  const isActive = ctx.settings.autoActivate
  return {
    email,
    hashedPassword,
    name,
    isActive,
    isAdmin: false,
    createdAt: now,
    updatedAt: now,
    lastLoginAt: null,
    totpSecret: null,
    totpEnabledAt: null,
    totpLastStep: null,
    emailVerifiedAt: null,
    activatedAt: isActive ? now : null,
    passwordSetAt: now,
  }
}
