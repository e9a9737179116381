/** One mail, ready to send: the host decides how it travels. */
export interface AuthMail {
  kind: 'activation' | 'password_reset' | 'email_verification' | 'email_change' | 'notice'
  to: string
  name: string | null
  url: string | null
  expiresAt: Date | null
  locale: string
  subject: string
  text: string
  html: string
}

/** What the host implements to send links. Called after commit and off the response path. */
export interface Mailer {
  send(mail: AuthMail): Promise<void>
}
