/** What the features that are on write into the tables. */
export interface TableNeeds {
  /** Characters of a password hash; null: nobody knows. */
  readonly hashLength: number | null
  /** Characters of a TOTP secret as it is stored; null: there is no second factor. */
  readonly secretLength: number | null
  /** Keys of the registered providers; null: nobody knows. */
  readonly providers: readonly string[] | null
  /** Accounts are also made without a signup, so nobody was asked for fields of the host. */
  readonly makesAccountsOtherwise: boolean
  readonly recoveryCodes: boolean
  readonly passkeys: boolean
  /** People sign in, or confirm a session, by mailed links and codes. */
  readonly emailLogins: boolean
  /** Characters of the longest payload of a one-shot token. */
  readonly payloadLength: number
  /** Linking by verified email is on, and goes by `email_verified_at`. */
  readonly linksByVerifiedEmail: boolean
}
