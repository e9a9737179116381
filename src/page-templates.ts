/** The pages behind mailed links and after a provider: a form, what it came to, and why it did not. */
export const linkPageNames = [
  'activate',
  'activated',
  'password_reset',
  'password_changed',
  'email_verify',
  'email_verified',
  'email_change',
  'email_changed',
  'email_login',
  'second_factor',
  'challenge_over',
  'undo',
  'undone',
  'undone_without_address',
  'link_invalid',
  'link_refused',
  'address_taken',
  'too_many',
  'trouble',
] as const

export type LinkPageName = (typeof linkPageNames)[number]

/** The pages of the account area. */
export const areaPageNames = [
  'login',
  'signup',
  'checkMail',
  'forgotPassword',
  'mfa',
  'reauthenticate',
  'signOut',
  'signedOut',
  'account',
  'profile',
  'email',
  'password',
  'connections',
  'removeConnection',
  'security',
  'authenticator',
  'recoveryCodes',
  'turnOffFactor',
  'addPasskey',
  'renamePasskey',
  'removePasskey',
  'devices',
] as const

export type AreaPageName = (typeof areaPageNames)[number]

/** The name of a page. */
export type PageName = LinkPageName | AreaPageName

/** What a page is made of. A link's page holds no token: its form posts to the address it came from, with no `action`. */
export interface PageInput {
  /** Which page it is. */
  readonly page: LinkPageName
  /** The reader's language. */
  readonly locale: 'en-US' | 'pt-BR' | (string & {})
  /** Why the form is shown again, in the reader's language. */
  readonly problem: string | null
  /**
   * Of `undo` and `undone`: what can be used to sign in afterwards; of `email_login`: which address signs in, and where it was asked for. In
   * the reader's language. Empty on every other page.
   */
  readonly items: readonly string[]
  /** `settings.loginUrl`. */
  readonly loginUrl: string | null
  /** Of `second_factor` alone: where its form posts `mfa_token` and `code` to; null on every other page. */
  readonly challenge: {
    /** Where the form posts to. */
    readonly action: string
    /** Goes along as `mfa_token`. */
    readonly mfaToken: string
  } | null
  /**
   * Of the pages `activate`, `email_verify`, `email_change` and `email_login`: the form has a field `password` for the password of the account, because
   * nothing else tells that its owner clicks. `canSkip`: and a second button, name `forgot`, value `1`, for who does not know it.
   */
  readonly password: {
    /** True: the form also has the second button. */
    readonly canSkip: boolean
  } | null
  /** For the `nonce` of a `<style>`: the page's policy lets nothing else through. */
  readonly styleNonce: string
}

/** What a page of the account area is made of. */
export interface AreaPageInput {
  /** Which page it is. */
  readonly page: AreaPageName
  /** Plain text. */
  readonly title: string
  /** The tag of the reader's language. */
  readonly lang: string
  /** Finished HTML of ours: the page as it would be, forms and messages included. */
  readonly body: string
  /** Who is signed in, where the page names them. */
  readonly user: {
    /** Plain text. */
    readonly email: string
    /** Plain text; null: the account has none. */
    readonly name: string | null
  } | null
  /** For the `nonce` of a `<style>` or a `<script>` of yours. */
  readonly nonce: string
}

/** What a layout is put around. Everything but `head` and `body` is plain text: escape it, or write it by `html`. */
export interface LayoutInput extends Omit<AreaPageInput, 'page'> {
  /** Which page it is. */
  readonly page: PageName
  /** Finished HTML for the `<head>`: our style sheet and script. */
  readonly head: string
}

/** Returns a whole HTML document. */
export type LayoutTemplate = (parts: LayoutInput) => string

/**
 * Page -> for a page behind a link a whole HTML document, for a page of the account area its body. The form of `password_reset` has the
 * fields `new_password` and `confirm_password`.
 */
export type PageTemplates = { readonly [Name in LinkPageName]?: (page: PageInput) => string } & {
  readonly [Name in AreaPageName]?: (page: AreaPageInput) => string
}
