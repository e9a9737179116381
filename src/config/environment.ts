import { ConfigurationError } from '../errors'

export type Environment = 'production' | 'development' | 'test'

const environments: readonly unknown[] = ['production', 'development', 'test'] satisfies Environment[]

/**
 * Returns true if the rules of production apply. The option decides; without it NODE_ENV does, the only variable that the library reads by
 * itself. Every value except `development` and `test` is production, so that a forgotten variable weakens nothing.
 *
 * @throws ConfigurationError when the option is none of the three.
 */
export function isProduction(environment?: Environment): boolean {
  const current = environmentOf(environment)
  return current !== 'development' && current !== 'test'
}

/**
 * Returns true if the rules for tests apply, where nothing waits for a clock.
 * @throws ConfigurationError as `isProduction` does
 */
export function isTest(environment?: Environment): boolean {
  return environmentOf(environment) === 'test'
}

function environmentOf(environment?: Environment): string | undefined {
  if (environment !== undefined && !environments.includes(environment)) {
    throw new ConfigurationError("Option environment must be 'production', 'development' or 'test'.")
  }
  return environment ?? process.env['NODE_ENV']
}
