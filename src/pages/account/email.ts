import type { AuthContext } from '../../context'
import type { UserRecord } from '../../store/auth-store'
import type { AccountPage } from '../account-page'
import { requireFields } from '../form-fault'
import { emailPage } from './email-page'

/** Mails a link that verifies the address, or a link to change to a new address. */
export const email: AccountPage = {
  page: 'email',
  path: '/account/email',
  title: 'email.title',
  navigation: 'email.nav',
  isThere: ({ mailQueue }) => mailQueue !== null,
  needsFresh: true,
  show({ ctx, reader, session: { user }, formOf }, state) {
    const { localAccountsEnabled: canChange } = ctx.settings
    return emailPage(reader, state, { email: user.email, isVerified: isVerified(ctx, user), canChange, formOf })
  },
  async post({ ask }, fields) {
    if (fields['action'] === 'verify') {
      await ask.requestEmailVerification()
      return { notice: 'verification_sent' }
    }
    requireFields(fields, 'new_email')
    await ask.requestEmailChange({ newEmail: fields['new_email'] ?? '' })
    return { notice: 'change_sent' }
  },
}

/** Returns whether the address is verified; null if the app's table has no column for the verification. */
export function isVerified({ store }: AuthContext, { emailVerifiedAt }: UserRecord): boolean | null {
  return store.users.fields.has('emailVerifiedAt') ? emailVerifiedAt !== null : null
}
