"""How agents follow what they remember (Xiong et al., "How memory management impacts LLM agents")."""
