/** Plain data, complete and frozen after `resolveSettings`. Every field has an environment variable (docs/configuration.md). */
export interface Settings {
  readonly jwtSecret: string
  readonly accessTokenTtlSeconds: number
  readonly refreshTokenTtlSeconds: number
  readonly refreshFamilyTtlSeconds: number
  readonly refreshReuseGraceSeconds: number
  readonly tokenDelivery: 'bearer' | 'cookie' | 'both'
  readonly cookieSecure: boolean
  readonly cookieSamesite: 'lax' | 'strict' | 'none'
  readonly cookieDomain: string | null
  readonly accessCookieName: string
  readonly refreshCookieName: string
  readonly trustedOrigins: readonly string[]
  readonly oauthEnabled: boolean
  readonly oauthRedirectBaseUrl: string
  readonly oauthAllowAccountCreation: boolean
  readonly oauthLinkByVerifiedEmail: boolean
  readonly assumeEmailsProven: boolean
  readonly oauthStateCookieName: string
  readonly oauthStateTtlSeconds: number
  readonly oauthKeepLastLoginMethod: boolean
  readonly oauthSuccessRedirect: string | null
  readonly oauthErrorRedirect: string | null
  readonly signupEnabled: boolean
  readonly autoActivate: boolean
  readonly returnTokenInResponse: boolean
  readonly linksInProduction: boolean
  readonly activationTtlSeconds: number
  readonly passwordResetTtlSeconds: number
  readonly emailVerificationTtlSeconds: number
  readonly emailChangeTtlSeconds: number
  readonly activationUrlTemplate: string | null
  readonly passwordResetUrlTemplate: string | null
  readonly emailVerificationUrlTemplate: string | null
  readonly emailChangeUrlTemplate: string | null
  readonly singleActiveToken: boolean
  readonly passwordMinLength: number
  readonly passwordMaxBytes: number
  readonly passwordRequireComplexity: boolean
  readonly revealTakenEmail: boolean
  readonly mfaEnabled: boolean
  readonly mfaIssuer: string | null
  readonly mfaRecoveryCodesCount: number
  readonly mfaTokenTtlSeconds: number
  readonly mfaVerifyWindow: number
  readonly mfaSecretKey: string | null
  readonly reauthenticate: boolean
  readonly backendLinks: boolean
  readonly loginUrl: string | null
  readonly defaultLocale: 'en-US' | 'pt-BR'
  readonly sessionTtlSeconds: number
  readonly sessionCookieName: string
  readonly openapiEnabled: boolean
}
