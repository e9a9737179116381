/** What the enabled features write into the tables. */
export interface TableNeeds {
  /** The number of characters of a password hash. Null: unknown. */
  readonly hashLength: number | null
  /** The number of characters of a stored TOTP secret. Null: the second factor is off. */
  readonly secretLength: number | null
  /** The keys of the registered providers. Null: unknown. */
  readonly providers: readonly string[] | null
  /** True if accounts also begin without a sign-up, for example by a provider. No person enters the host's fields of such an account. */
  readonly makesAccountsOtherwise: boolean
  readonly recoveryCodes: boolean
  readonly passkeys: boolean
  /** True if people sign in, or confirm a session, by mailed links and codes. */
  readonly emailLogins: boolean
  /** The number of characters of the longest payload of a one-time token. */
  readonly payloadLength: number
  /** True if linking by verified email is on and uses `email_verified_at`. */
  readonly linksByVerifiedEmail: boolean
}
