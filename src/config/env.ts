import type { EnvSettings } from './every-setting'
import { environmentVariable, inputNames } from './settings'

/**
 * Reads the variables of docs/configuration.md as text, which boot converts and checks. A variable that is missing or empty is
 * unset; no other is looked at.
 * @param env instead of `process.env`
 */
export function settingsFromEnv(env: Readonly<Record<string, string | undefined>> = process.env): EnvSettings {
  const variables = inputNames.map((setting) => [setting, env[environmentVariable(setting)]] as const)
  return Object.fromEntries(variables.filter(([, text]) => text)) as EnvSettings // text of the environment, by its settings' names
}
