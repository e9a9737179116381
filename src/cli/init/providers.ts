/** Providers that need only a client id and a client secret. Each value is the class of the provider's client. */
const classes = {
  google: 'GoogleClient',
  github: 'GitHubClient',
  microsoft: 'MicrosoftClient',
  facebook: 'FacebookClient',
  discord: 'DiscordClient',
  gitlab: 'GitLabClient',
  linkedin: 'LinkedInClient',
  slack: 'SlackClient',
  twitch: 'TwitchClient',
} as const

export type ProviderName = keyof typeof classes

export const providerNames = Object.keys(classes) as ProviderName[] // a record has exactly these keys

/** The names in the auth module for a provider. */
export interface ProviderCode {
  readonly name: ProviderName
  readonly className: string
  readonly clientId: string
  readonly clientSecret: string
}

/** Returns the names that the auth module uses for a provider. `providersFromEnv()` reads the same environment variables. */
export function codeOf(name: ProviderName): ProviderCode {
  const prefix = `OAUTH_${name.toUpperCase()}_CLIENT`
  return { name, className: classes[name], clientId: `${prefix}_ID`, clientSecret: `${prefix}_SECRET` }
}
