import type supertest from 'supertest'
import { bearerOf, type LocalHost, type LocalMember, password, post } from '../local/people'
import { tokenOf } from '../support/mailbox'

export const anotherPassword = 'the ferry leaves before dawn'

/** The next notice to an address that carries a link; notices without one are passed over. */
export async function undoTokenOf(host: LocalHost, to: string): Promise<string> {
  for (;;) {
    const mail = await host.mails.next({ kind: 'notice', to })
    if (mail.url !== null) return tokenOf(mail)
  }
}

export function undo(host: LocalHost, token: unknown): supertest.Test {
  return post(host, '/security/undo', { token })
}

/** Whoever holds the account's session and password moves it to another address. */
export async function moveTo(host: LocalHost, person: LocalMember, newEmail: string, currentPassword = password): Promise<void> {
  await post(host, '/email-change/request', { new_email: newEmail, current_password: currentPassword }, bearerOf(person)).expect(202)
  const token = tokenOf(await host.mails.next({ kind: 'email_change', to: newEmail }))
  await post(host, '/email-change/confirm', { token }, bearerOf(person)).expect(200)
}

export function changePassword(
  host: LocalHost,
  { token, refreshToken }: Pick<LocalMember, 'token' | 'refreshToken'>,
  newPassword = anotherPassword,
  currentPassword = password,
): supertest.Test {
  const body = { current_password: currentPassword, new_password: newPassword, refresh_token: refreshToken }
  return post(host, '/password-change', body, bearerOf({ token }))
}

/** The owner chooses a password by the mail that an undo sends, and is signed in. */
export async function comeBack(host: LocalHost, email: string, newPassword = 'a lamp in the northern window'): Promise<supertest.Response> {
  const token = tokenOf(await host.mails.next({ kind: 'password_reset', to: email }))
  return post(host, '/password-reset/confirm', { token, new_password: newPassword })
}
