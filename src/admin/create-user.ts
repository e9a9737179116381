import { issueLink, type LinkToken, leadsSomewhere } from '../accounts/email-links/email-link'
import { mailLink } from '../accounts/email-links/send-mail'
import { requireName } from '../accounts/update-profile'
import { type AuthContext, transaction } from '../context'
import { hasPasswords, requirePasswords } from '../core/config/every-setting'
import { ConfigurationError, EmailTakenError } from '../core/errors'
import { requireEmail } from '../http/email-address'
import { checkPassword } from '../passwords/check-password'
import { hashPassword, unusablePassword } from '../passwords/verify-password'
import { DuplicateRecordError, type NewUser, type UserRecord } from '../store/auth-store'
import { newUser } from '../store/user-records'
import { type AdminUser, announceAdmin, toAdminUser } from './change-user'

export interface UserCreation {
  email: string
  /** At most 120 characters. An empty name is stored as null. */
  name?: string | null | undefined
  /** Null or left out: the account gets no password, and the function makes a link to set a password. */
  password?: string | null | undefined
  /** True: the account gets administrator rights. Default false. */
  isAdmin?: boolean | undefined
  /** True: the address counts as verified. Default false. */
  isVerified?: boolean | undefined
}

export interface CreatedUser {
  user: AdminUser
  /** A link to set a password. Null if the account has a password, or if the app has no URL for the link. */
  link: LinkToken | null
}

/**
 * Only trusted code may call it, so it does not call the host's `admit` and `onSignup`.
 * @throws ValidationError (address, name, password), EmailTakenError, ConfigurationError if `isAdmin` is true and the table has no column
 * for administrators
 */
export async function createUser(ctx: AuthContext, { password = null, isAdmin = false, ...input }: UserCreation): Promise<CreatedUser> {
  const email = requireEmail(input.email)
  const name = requireName(input.name)
  if (isAdmin && !ctx.store.users.fields.has('isAdmin'))
    throw new ConfigurationError('The users table has no column that says who is an administrator. Map `users.columns.isAdmin` first.')
  if (password !== null) {
    requirePasswords(ctx.settings)
    await checkPassword(ctx, password, { email, name })
  }
  const hashedPassword = password === null ? unusablePassword() : await hashPassword(ctx, password)
  const { defaultLocale } = ctx.settings
  const wantsLink = password === null && hasPasswords(ctx.settings) && leadsSomewhere(ctx.settings, 'PASSWORD_RESET')
  const now = ctx.now()
  const account = newUser(now, {
    email,
    name,
    hashedPassword,
    isAdmin,
    emailVerifiedAt: input.isVerified ? now : null,
    passwordSetAt: password === null ? null : now,
  })
  const { user, link, admins } = await transaction(ctx, async (ctx) => {
    const user = await insert(ctx, account)
    ctx.events.emit('signup', { userId: user.id, by: 'command' })
    if (isAdmin) ctx.events.emit('admin.granted', { userId: user.id, actorId: null })
    const link = wantsLink ? await issueLink(ctx, user.id, 'PASSWORD_RESET') : null
    return { user, link, admins: isAdmin ? await ctx.store.users.lockAdmins() : [] }
  })
  if (isAdmin) announceAdmin(ctx, { user, isAdmin, admins }, null)
  if (link) mailLink(ctx, user, 'password_reset', link, defaultLocale)
  return { user: toAdminUser(user), link }
}

async function insert(ctx: AuthContext, account: NewUser): Promise<UserRecord> {
  try {
    return await ctx.store.users.insert(account, { by: 'command' })
  } catch (error) {
    throw error instanceof DuplicateRecordError ? new EmailTakenError({ cause: error }) : error
  }
}
