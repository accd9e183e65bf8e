"""The plugin for vLLM that :mod:`sa_profile.vllm` registers. `plugin` lists the hooks, and each other module hooks one part of vLLM."""
